import type { StoreOpener } from '../engines/openers/store-opener.ts';
import type { TagCounts } from '../engines/search/plant-search.ts';
import { alignedColumns } from '../formats/aligned-columns.ts';
import { visible } from '../formats/visible-text.ts';
import { CountedProgress } from './shared/progress-display.ts';

/** More tags are counted together, because a client may send another one with each plant. */
const COUNTED_TAGS_MAX = 1_000_000;
const STEP_MS = 1_000;

interface AllTags extends Pick<TagCounts, 'untagged' | 'others'> {
  tags: [tag: string, plants: number][];
}

/** Counts the plants of each tag beside a service, in short statements. The most frequent is first. */
export async function countTags(store: StoreOpener): Promise<AllTags> {
  // A missing store has a better message here.
  await (await store.openReader())[Symbol.asyncDispose]();
  await using search = await store.openSearch();
  using progress = new CountedProgress('counting', 'revisions', await search.revisions());
  const counts = new Map<string, number>();
  let untagged = 0;
  let others = 0;
  for (let from: bigint | undefined, isEnd = false; !isEnd; ) {
    const step: TagCounts = await search.countTags(from, STEP_MS);
    for (const [tag, plants] of step.tags) {
      if (counts.has(tag) || counts.size < COUNTED_TAGS_MAX) counts.set(tag, (counts.get(tag) ?? 0) + plants);
      else others += plants;
    }
    untagged += step.untagged;
    others += step.others;
    progress.add(step.searched);
    from = step.next;
    isEnd = from === undefined;
  }
  const tags = [...counts].toSorted(([a, one], [b, two]) => two - one || (a < b ? -1 : 1));
  return { tags, untagged, others };
}

export function tagsJson({ tags, untagged, others }: AllTags): string {
  return visible(JSON.stringify({ tags: tags.map(([tag, plants]) => ({ tag, plants })), untagged, others }));
}

/** A line for each tag, which is in quotes, so that no tag looks like the other lines. */
export function tagsText({ tags, untagged, others }: AllTags): string {
  const rows = tags.map(([tag, plants]) => `${plants}\t${visible(JSON.stringify(tag))}`);
  if (untagged > 0) rows.push(`${untagged}\twithout a tag`);
  if (others > 0) rows.push(`${others}\twith other tags, which are long or too many`);
  return alignedColumns(['plants\ttag', ...rows].join('\n'));
}
