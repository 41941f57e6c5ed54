import { type PlantSearch, revisionsOf, searchPage } from '../../plant-search.ts';
import { countRows } from '../../tables/revision-rows.ts';
import type { Query, Row } from '../../tables/table-access.ts';
import { CalledThread } from '../threads/called-thread.ts';
import type { SearchCall } from './search-thread.ts';
import { STORE_BYTES } from './sqlite-reader.ts';

/** Counting the rows of a larger store takes more than about a second. */
const COUNTED_BYTES_MAX = 256 * 1024 * 1024;

const nameContains = (parameter: string): string => `folded_contains(name, ${parameter})`;

/** Searches a store on a thread of its own, which starts with the first search. */
export function openSqliteSearch(path: string): PlantSearch {
  const program = new URL('./search-thread.ts', import.meta.url);
  const thread = new CalledThread<SearchCall, Row[]>('search', program, path);
  const query: Query = (text, values) => thread.call([text, values]);
  const bytes = async () => Number((await query(STORE_BYTES, []))[0]![0]);
  return {
    page: (...args) => searchPage({ query, nameContains }, ...args),
    revisionsOf: (...args) => revisionsOf(query, ...args),
    bytes,
    // SQLite stores no count of rows, so a count reads the whole table.
    revisions: async () =>
      (await bytes()) > COUNTED_BYTES_MAX ? undefined : (await countRows(query)).revisions,
    [Symbol.asyncDispose]: () => thread.close(),
  };
}
