import { revisionsOf, searchPage } from '../plant-search.ts';
import type { PlantSearch } from '../plant-store.ts';
import type { Query, Row } from '../revision-rows.ts';
import { CalledThread } from './called-thread.ts';
import type { SearchCall } from './search-thread.ts';
import { BYTES } from './sqlite-reader.ts';

/** Searches a store on a thread of its own, which starts with the first search. */
export function openSqliteSearch(path: string): PlantSearch {
  const program = new URL('./search-thread.ts', import.meta.url);
  const thread = new CalledThread<SearchCall, Row[]>('search', program, path);
  const query: Query = (text, values) => thread.call([text, values]);
  return {
    page: (...args) => searchPage(query, ...args),
    revisionsOf: (...args) => revisionsOf(query, ...args),
    bytes: async () => Number((await query(BYTES, []))[0]![0]),
    [Symbol.asyncDispose]: () => thread.close(),
  };
}
