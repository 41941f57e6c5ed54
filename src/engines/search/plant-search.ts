/** The search of plants, the same for both engines. */
import { BATCH_TEXT_LENGTH_MAX, textLengthOf } from '../../core/commit/batch-size.ts';
import type { PlantRevision } from '../../core/commit/plant-revision.ts';
import { ID_MIN } from '../../core/contract/limits.ts';
import { REVISION_COLUMNS, revisionOf } from '../tables/revision-rows.ts';
import type { Query, Row } from '../tables/table-access.ts';
import { countThatFits, TEXT_BYTES } from './page-size.ts';
import {
  type ReadSlice,
  readSlices,
  type SearchProgress,
  type SliceRows,
  type SliceSettings,
} from './search-slices.ts';

/** Selects plants by their latest revisions: all that match every given member. */
export interface PlantFilter {
  id?: bigint | undefined;
  /** A part of the name, by the rule of `folded-text.ts`. */
  name?: string | undefined;
  tag?: string | undefined;
  /** Whether the plant has no tag, which is not an empty tag. */
  isUntagged?: boolean | undefined;
  /** The earliest time of recording the latest revision; ms since 1970. */
  since?: number | undefined;
  /** `created`: the plant has one revision. `revised`: it has several. */
  outcome?: 'created' | 'revised' | undefined;
  from?: bigint | undefined;
}

export interface PlantPage extends SearchProgress {
  /** The latest revision of each plant, in the order of ids. */
  plants: PlantRevision[];
}

export interface PlantCount extends SearchProgress {
  plants: number;
}

export interface TagCounts extends SearchProgress {
  /** Plants by tag. */
  tags: ReadonlyMap<string, number>;
  /** Plants without a tag. */
  untagged: number;
  /** Plants with a tag that is too long to be listed. */
  others: number;
}

/**
 * Searches the store of a service in short statements, which hold up no writes and checkpoints. A
 * search ends when its time is over, but always makes progress.
 */
export interface PlantSearch extends AsyncDisposable {
  /**
   * Searches from `filter.from` on, until `limit` plants are found. A page has fewer plants when
   * their text is very long.
   * @throws {StoreUnavailable}
   */
  page(filter: PlantFilter, limit: number, timeLimitMs: number): Promise<PlantPage>;
  /** Counts the plants of a filter from `filter.from` on. @throws {StoreUnavailable} */
  count(filter: PlantFilter, timeLimitMs: number): Promise<PlantCount>;
  /** Counts the plants of each tag, from an id on. @throws {StoreUnavailable} */
  countTags(from: bigint | undefined, timeLimitMs: number): Promise<TagCounts>;
  /** The last revisions of one plant, oldest first. They are fewer if their text is long. */
  revisionsOf(id: bigint, limit: number): Promise<PlantRevision[]>;
  bytes(): Promise<number | undefined>;
  /** How many revisions the store has, or about how many; undefined if that would take long. */
  revisions(): Promise<number | undefined>;
}

/** Plants and time of one page when all pages are read one after the other. */
export const PAGE_PLANTS = 2_048;
const PAGE_TIME_MS = 1_000;
/** SQL: the tag of a plant, unless it is so long that many would need too much memory. */
const COUNTED_TAG = 'CASE WHEN octet_length(tag) <= 200 THEN tag END';
/** So many tags end a {@link TagCounts}. */
const TAGS_MAX = 10_000;
/** Comparing names of a megabyte takes up to half a second. PostgreSQL ends statements of two seconds. */
const COMPARED_MAX_BYTES = 1024 * 1024;

/** Adds a value to a statement, and returns its parameter, such as `$3`. */
export type AddValue = (value: string) => string;

export interface SearchedStore {
  query: Query;
  sliceRows: SliceRows;
  /** Returns SQL: whether a name contains a part by the rule of `folded-text.ts`. */
  nameContains: (part: string, add: AddValue) => string;
}

const FROM_RANGE = 'FROM plant_revision AS latest WHERE id BETWEEN $1 AND $2';
/** SQL: the latest revision of each plant of a range. With the range, PostgreSQL merges both sides. */
const LATEST_OF_RANGE = `NOT EXISTS (
  SELECT 1 FROM plant_revision AS later
  WHERE later.id = latest.id AND later.id BETWEEN $1 AND $2 AND later.revision > latest.revision)`;
/** One plant may have many revisions, so its latest one is looked up once. */
const LATEST_OF_PLANT = 'id = $1 AND revision = (SELECT max(revision) FROM plant_revision WHERE id = $1)';

/** Reads a page of a search: see {@link PlantSearch}. */
export async function searchPage(
  store: SearchedStore,
  filter: PlantFilter,
  limit: number,
  timeLimitMs: number,
): Promise<PlantPage> {
  const plants: PlantRevision[] = [];
  let textLength = 0;
  const progress = await searchSlices(
    store,
    filter,
    { firstRows: limit, timeLimitMs },
    async (slice, last) => {
      const { found, isCutShort } = await matches(store.query, slice, limit - plants.length);
      plants.push(...found);
      for (const { plant } of found) textLength += textLengthOf(plant);
      if (isCutShort) return found.at(-1)!.plant.id;
      return textLength >= BATCH_TEXT_LENGTH_MAX ? last : undefined;
    },
  );
  return { plants, ...progress };
}

/** Counts the plants that a filter selects: see {@link PlantSearch}. */
export async function countPlants(
  store: SearchedStore,
  filter: PlantFilter,
  timeLimitMs: number,
): Promise<PlantCount> {
  let plants = 0;
  const progress = await searchSlices(store, filter, { timeLimitMs }, async ({ where, values }) => {
    const [row] = await store.query(`SELECT count(*) ${where}`, values);
    plants += Number(row![0]);
    return undefined;
  });
  return { plants, ...progress };
}

/** Counts the plants of each tag: see {@link PlantSearch}. */
export async function countTags(
  store: SearchedStore,
  from: bigint | undefined,
  timeLimitMs: number,
): Promise<TagCounts> {
  const counts = { tags: new Map<string, number>(), untagged: 0, others: 0 };
  const progress = await searchSlices(store, { from }, { timeLimitMs }, async ({ where, values }, last) => {
    const text = `SELECT ${COUNTED_TAG}, count(*), count(*) FILTER (WHERE tag IS NULL) ${where} GROUP BY 1`;
    for (const [tag, ...numbers] of await store.query(text, values)) {
      const [plants, untagged] = numbers.map(Number) as [number, number];
      if (typeof tag === 'string') counts.tags.set(tag, (counts.tags.get(tag) ?? 0) + plants);
      else {
        counts.untagged += untagged;
        counts.others += plants - untagged;
      }
    }
    return counts.tags.size >= TAGS_MAX ? last : undefined;
  });
  return { ...counts, ...progress };
}

/** Reads all plants that a filter selects, in pages, each plant as it is when it is read. */
export async function* searchAll(
  search: Pick<PlantSearch, 'page'>,
  filter: PlantFilter = {},
): AsyncIterable<PlantRevision[]> {
  for (let from = filter.from ?? ID_MIN; ; ) {
    const { plants, next } = await search.page({ ...filter, from }, PAGE_PLANTS, PAGE_TIME_MS);
    yield plants;
    if (next === undefined) return;
    from = next;
  }
}

export async function revisionsOf(query: Query, id: bigint, limit: number): Promise<PlantRevision[]> {
  const select = (columns: string, rows: number): Promise<Row[]> =>
    query(`SELECT ${columns} FROM plant_revision WHERE id = $1 ORDER BY revision DESC LIMIT ${rows}`, [id]);
  const rows = countThatFits(await select(TEXT_BYTES, limit));
  return (await select(REVISION_COLUMNS, rows)).map(revisionOf).reverse();
}

/** The latest revisions of a slice that a filter selects. */
interface FilteredSlice {
  /** SQL from its FROM clause on. */
  where: string;
  values: unknown[];
}

/** Reads the slices of a filter. @param read gets a slice and its last id, as in {@link ReadSlice} */
async function searchSlices(
  { query, sliceRows, nameContains }: SearchedStore,
  { id, from = ID_MIN, name = '', tag, isUntagged = false, since, outcome }: PlantFilter,
  settings: Omit<SliceSettings, 'from' | 'nameBytesMax'>,
  read: (slice: FilteredSlice, last: bigint) => Promise<bigint | undefined>,
): Promise<SearchProgress> {
  const nothing = { next: undefined, searched: 0 };
  // No stored text has U+0000 or an unpaired surrogate, and PostgreSQL rejects such parameters.
  const isStorable = (text = ''): boolean => text.isWellFormed() && !text.includes('\0');
  if (!isStorable(name) || !isStorable(tag) || (id !== undefined && id < from)) return nothing;
  const wanted: unknown[] = [];
  // The first two values are the ids of the slice.
  const add = (value: string | number): string => `$${wanted.push(value) + 2}`;
  const conditions = [FROM_RANGE];
  if (name !== '') conditions.push(nameContains(name, add));
  if (tag !== undefined) conditions.push(`tag = ${add(tag)}`);
  if (isUntagged) conditions.push('tag IS NULL');
  if (since !== undefined) conditions.push(`recorded_at >= ${add(since)}`);
  if (outcome !== undefined) conditions.push(outcome === 'created' ? 'revision = 1' : 'revision > 1');
  const readRange: ReadSlice = (first, last) => {
    const latest = first === last ? LATEST_OF_PLANT : LATEST_OF_RANGE;
    const where = [...conditions, latest].join(' AND ');
    return read({ where, values: [first, last, ...wanted] }, last);
  };
  const nameBytesMax = name === '' ? Infinity : COMPARED_MAX_BYTES;
  if (id === undefined)
    return await readSlices(query, sliceRows, { ...settings, from, nameBytesMax }, readRange);
  await readRange(id, id);
  return nothing;
}

/**
 * Reads the plants of a slice. It first reads the lengths of their texts, because a page of names as
 * large as requests would need too much memory.
 */
async function matches(
  query: Query,
  { where, values }: FilteredSlice,
  limit: number,
): Promise<{ found: PlantRevision[]; isCutShort: boolean }> {
  const select = (columns: string, rows: number): Promise<Row[]> =>
    query(`SELECT ${columns} ${where} ORDER BY id LIMIT ${rows}`, values);
  const lengths = await select(`id, ${TEXT_BYTES}`, limit);
  const rows = countThatFits(lengths);
  const found = rows === 0 ? [] : (await select(REVISION_COLUMNS, rows)).map(revisionOf);
  const lastId = found.at(-1)?.plant.id;
  if (lastId === undefined) return { found, isCutShort: false };
  // A plant that was stored between the statements leaves no room for one of the last.
  const isDisplaced = found.length === rows && lastId < BigInt(lengths[rows - 1]![0]!);
  return { found, isCutShort: rows < lengths.length || rows === limit || isDisplaced };
}
