import { nameCondition } from '../../search/name-condition.ts';
import {
  type AddValue,
  countPlants,
  countTags,
  type PlantSearch,
  revisionsOf,
  searchPage,
} from '../../search/plant-search.ts';
import type { Query, Row } from '../../tables/table-access.ts';
import { CalledThread } from '../threads/called-thread.ts';
import type { SearchCall } from './search-thread.ts';
import { STORE_BYTES } from './sqlite-reader.ts';

/** Counting the rows of a larger store takes more than about a second. */
const COUNTED_MAX_BYTES = 256 * 1024 * 1024;

const SLICE_ROWS = { min: 128, max: 16_384 };

/** In SQLite, `lower` changes only the letters of ASCII. */
const nameContains = (part: string, add: AddValue): string =>
  nameCondition(part, add, {
    contains: parameter => `instr(lower(name), ${parameter}) > 0`,
    isMatch: `name_contains(name, ${add(part)})`,
  });

/** Searches a store on a thread of its own, which starts with the first search. */
export function openSqliteSearch(path: string): PlantSearch {
  const program = new URL('./search-thread.ts', import.meta.url);
  const thread = new CalledThread<SearchCall, Row[]>('search', program, path);
  const query: Query = (text, values) => thread.call([text, values]);
  const store = { query, sliceRows: SLICE_ROWS, nameContains };
  const numberOf = async (text: string) => Number((await query(text, []))[0]![0]);
  const bytes = () => numberOf(STORE_BYTES);
  return {
    page: (...args) => searchPage(store, ...args),
    count: (...args) => countPlants(store, ...args),
    countTags: (...args) => countTags(store, ...args),
    revisionsOf: (...args) => revisionsOf(query, ...args),
    bytes,
    // SQLite stores no count of rows, so a count reads the whole table.
    revisions: async () =>
      (await bytes()) > COUNTED_MAX_BYTES ? undefined : await numberOf('SELECT count(*) FROM plant_revision'),
    [Symbol.asyncDispose]: () => thread.close(),
  };
}
