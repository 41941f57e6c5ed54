/** The search of plants, the same for both engines. */
import { setTimeout as sleep } from 'node:timers/promises';
import { BATCH_TEXT_LENGTH_MAX, textLengthOf } from '../core/commit/batch-size.ts';
import type { PlantRevision } from '../core/commit/plant-revision.ts';
import { ID_MAX, ID_MIN } from '../core/contract/limits.ts';
import { countThatFits, TEXT_BYTES } from './page-size.ts';
import { REVISION_COLUMNS, revisionOf } from './tables/revision-rows.ts';
import type { Query, Row } from './tables/table-access.ts';

/** A slice that takes longer than this is followed by a smaller one. */
const SLICE_MS = 40;
/** Creates run in the pause after each slice. The pause is so many times as long as the slice. */
const PAUSE_SHARE = 7;
const PAUSE_MS_MAX = 250;
/** Plants and time of one page when all pages are read one after the other. */
export const PAGE_PLANTS = 2_048;
const PAGE_TIME_MS = 1_000;

/** Revisions of the first slice of a search, and of the largest. */
const SLICE_ROWS = { min: 128, max: 16_384 };

export interface SearchedStore {
  query: Query;
  /** Returns SQL: whether the name contains a parameter, such as `$3`. Both are {@link folded}. */
  nameContains: (parameter: string) => string;
}

/**
 * Reads a page of a search in slices, each with a few short statements. The first one is small: if
 * the store does not fit into memory, each row may cost a disk read.
 */
export async function searchPage(
  store: SearchedStore,
  { id, from = ID_MIN, name, tag }: PlantFilter,
  limit: number,
  timeLimitMs: number,
  { min, max } = SLICE_ROWS,
): Promise<PlantPage> {
  const page: PlantPage = { plants: [], next: from, searched: 0 };
  // No stored text has U+0000 or an unpaired surrogate, and PostgreSQL rejects such parameters.
  const isStorable = (text = ''): boolean => text.isWellFormed() && !text.includes('\0');
  if (!isStorable(name) || !isStorable(tag) || (id !== undefined && id < from))
    return { ...page, next: undefined };
  const endsAt = performance.now() + timeLimitMs;
  let rows = Math.min(Math.max(limit, min), max);
  let textLength = 0;
  while (page.next !== undefined) {
    const startedAt = performance.now();
    const start = id ?? page.next;
    const end = id ?? (await sliceEnd(store.query, start, rows));
    const plants = await matches(store, [start, end], { name, tag }, limit - page.plants.length);
    page.plants.push(...plants.found);
    let searchedTo = plants.isCutShort ? plants.found.at(-1)!.plant.id : end;
    // A damaged row may have a smaller id than `start`, but the search must advance.
    if (searchedTo < start) searchedTo = start;
    page.next = id === undefined && searchedTo < ID_MAX ? searchedTo + 1n : undefined;
    if (id === undefined) page.searched += rows;
    for (const { plant } of plants.found) textLength += textLengthOf(plant);
    const workMs = performance.now() - startedAt;
    await sleep(Math.min(PAUSE_SHARE * workMs, PAUSE_MS_MAX));
    if (plants.isCutShort || performance.now() >= endsAt || textLength >= BATCH_TEXT_LENGTH_MAX) break;
    if (workMs < SLICE_MS / 2) rows = Math.min(rows * 2, max);
    if (workMs > SLICE_MS) rows = Math.max(Math.floor(rows / 2), min);
  }
  return page;
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

/** The last id of a slice with this many revisions; a slice of one plant may have more. */
async function sliceEnd(query: Query, from: bigint, rows: number): Promise<bigint> {
  const text = `SELECT id FROM plant_revision WHERE id >= $1 ORDER BY id LIMIT 1 OFFSET ${rows}`;
  const [beyond] = await query(text, [from]);
  if (beyond === undefined) return ID_MAX;
  const next = BigInt(beyond[0]!);
  // A damaged row may have a smaller id than `from`.
  return next <= from ? from : next - 1n;
}

/**
 * Reads the latest revisions of a slice that match. It first reads the lengths of their texts,
 * because a page of names as large as requests would need too much memory.
 */
async function matches(
  { query, nameContains }: SearchedStore,
  [first, last]: [bigint, bigint],
  { name = '', tag }: PlantFilter,
  limit: number,
): Promise<{ found: PlantRevision[]; isCutShort: boolean }> {
  const values: unknown[] = [first, last];
  let where = 'id BETWEEN $1 AND $2';
  if (name !== '') where += ` AND ${nameContains(`$${values.push(name)}`)}`;
  if (tag !== undefined) where += ` AND tag = $${values.push(tag)}`;
  // One plant may have many revisions, so its latest one is looked up once.
  const latestOf = first === last ? '$1' : 'latest.id';
  where += ` AND revision = (SELECT max(revision) FROM plant_revision WHERE id = ${latestOf})`;
  const select = (columns: string, rows: number): Promise<Row[]> => {
    const text = `SELECT ${columns} FROM plant_revision AS latest WHERE ${where}`;
    return query(`${text} ORDER BY id LIMIT ${rows}`, values);
  };
  const lengths = await select(TEXT_BYTES, limit);
  const rows = countThatFits(lengths);
  const found = rows === 0 ? [] : (await select(REVISION_COLUMNS, rows)).map(revisionOf);
  return { found, isCutShort: found.length > 0 && (rows < lengths.length || rows === limit) };
}

/** Selects plants by their latest revisions: all that match every given member. */
export interface PlantFilter {
  id?: bigint | undefined;
  /** A part of the name. Case and accents do not matter. */
  name?: string | undefined;
  tag?: string | undefined;
  from?: bigint | undefined;
}

export interface PlantPage {
  /** The latest revision of each plant, in the order of ids. */
  plants: PlantRevision[];
  /** Where the next page begins; undefined only if everything was searched. */
  next: bigint | undefined;
  /** About how many revisions were searched; 0 for a filter with an id. */
  searched: number;
}

/** Searches the store of a service in short statements, which hold up no writes and checkpoints. */
export interface PlantSearch extends AsyncDisposable {
  /**
   * Searches from `filter.from` on, until `limit` plants are found or the time is over, but always
   * makes progress. A page has fewer plants when their text is very long.
   * @throws {StoreUnavailable}
   */
  page(filter: PlantFilter, limit: number, timeLimitMs: number): Promise<PlantPage>;
  /** The last revisions of one plant, oldest first. They are fewer if their text is long. */
  revisionsOf(id: bigint, limit: number): Promise<PlantRevision[]>;
  bytes(): Promise<number | undefined>;
  /** How many revisions the store has, or about how many; undefined if that would take long. */
  revisions(): Promise<number | undefined>;
}
