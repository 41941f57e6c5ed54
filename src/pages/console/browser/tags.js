// The screen Tags: how many plants have which tag. It counts when it is asked, since that reads the
// whole store.
import { COUNT, Table, time } from './display.js';
import { tagLink } from './newest.js';
import { html, useEffect, useRef, useState } from './preact.js';
import { request, useLoad } from './requests.js';
import { readText } from './search.js';

/** Rows that are shown at first, and that each click adds. */
const SHOWN_TAGS = 200;
/** More tags are counted together, because a client may send another one with each plant. */
const COUNTED_TAGS_MAX = 100_000;

/**
 * Plants by tag, plants without a tag, and plants with other tags than these, in the `read` part of
 * `total` revisions. `at` is the time at which the counting began.
 *
 * @typedef {{ phase: 'counting' | 'complete' | 'stopped', at: number, tags: Map<string, number>,
 *   untagged: number, others: number, read: number, total: number | null }} Counted
 */

/** The tags that were counted last, for the way back from the plants of a tag. @type {Counted | undefined} */
let lastCounted;

/** @type {Record<string, (row: [tag: string | undefined, plants: number]) => unknown>} */
const COLUMNS = {
  Tag: ([tag]) => tagLink(tag),
  Plants: ([, plants]) => COUNT.format(plants),
};

/** @param {(counted: Counted) => boolean} onCounted returns whether the counting goes on */
async function countTags(onCounted) {
  const at = Date.now();
  const { revisions: total } = await request('revisions/count');
  /** @type {Counted} */
  let counted = { phase: 'counting', at, tags: new Map(), untagged: 0, others: 0, read: 0, total };
  for (let from = ''; onCounted(counted) && counted.phase === 'counting'; ) {
    const part = await request(`tags?${new URLSearchParams({ from })}`);
    from = part.next ?? '';
    const tags = new Map(counted.tags);
    let others = counted.others + part.others;
    for (const [tag, plants] of part.tags) {
      if (tags.has(tag) || tags.size < COUNTED_TAGS_MAX) tags.set(tag, (tags.get(tag) ?? 0) + plants);
      else others += plants;
    }
    counted = {
      ...counted,
      phase: part.next === null ? 'complete' : 'counting',
      tags,
      untagged: counted.untagged + part.untagged,
      others,
      read: counted.read + part.searched,
    };
  }
}

export function Tags() {
  const [round, setRound] = useState(0);
  const again = () => {
    lastCounted = undefined;
    setRound(round + 1);
  };
  return html`<${CountedTags} key=${round} onAgain=${again} />`;
}

/** @param {{ onAgain: () => void }} props */
function CountedTags({ onAgain }) {
  const [counted, setCounted] = useState(lastCounted);
  const [shown, setShown] = useState(SHOWN_TAGS);
  const isStopped = useRef(lastCounted !== undefined);
  const take = (/** @type {Counted} */ next) => {
    if (isStopped.current) return false;
    if (next.phase === 'complete') lastCounted = next;
    setCounted(next);
    return true;
  };
  const { problem } = useLoad(async () => isStopped.current || countTags(take));
  const stop = () => {
    isStopped.current = true;
    setCounted(last => last && (last.phase === 'complete' ? last : { ...last, phase: 'stopped' }));
  };
  useEffect(() => stop, []);
  if (counted === undefined || problem) return problem;
  const { phase, at, tags, untagged, others, read, total } = counted;
  /** @type {[string | undefined, number][]} */
  const rows = [...tags].toSorted(([, one], [, two]) => two - one);
  if (untagged > 0) rows.push([undefined, untagged]);
  const isCounting = phase === 'counting';
  // While the tags are counted, their order changes, so they are shown at the end.
  return html`
    <p class="links">
      <span role="status">${isCounting ? 'Counting …' : `${phase === 'stopped' ? 'Stopped. So far: ' : ''}${tagsText(tags.size)}`}</span>
      ${
        isCounting
          ? html`<span>${tagsText(tags.size)} ${readText(read, total)}.</span><button type="button" onClick=${stop}>Stop</button>`
          : html`<span>Counted ${time(at)}.</span><button type="button" onClick=${onAgain}>Count again</button>`
      }
    </p>
    ${!isCounting && rows.length > 0 && html`<div class="narrow"><${Table} name="Tags, by number of plants" numbers=${['Plants']} columns=${COLUMNS} rows=${rows.slice(0, shown)} /></div>`}
    ${!isCounting && others > 0 && html`<p class="note">${COUNT.format(others)} plants have other tags: of more than 200 bytes, or beyond the first ${COUNT.format(COUNTED_TAGS_MAX)}.</p>`}
    ${
      !isCounting &&
      rows.length > shown &&
      html`<p class="links"><button type="button" onClick=${() => setShown(shown + SHOWN_TAGS)}>Show ${Math.min(SHOWN_TAGS, rows.length - shown)} more</button></p>`
    }`;
}

/** @param {number} count */
function tagsText(count) {
  return count === 1 ? '1 tag.' : `${COUNT.format(count)} tags.`;
}
