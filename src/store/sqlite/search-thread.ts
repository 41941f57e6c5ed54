import { parentPort, workerData } from 'node:worker_threads';
import { StoreRejected } from '../plant-store.ts';
import type { Row } from '../rows.ts';
import { openForReading, unavailable } from './database.ts';
import { queryRows } from './queries.ts';

/** A statement, and its parameters `$1`, `$2` and so on. */
export type SearchRequest = [text: string, values: unknown[]];

/** The class of an error is lost between threads, hence `isRejection`. */
export type SearchReply = { rows: Row[] } | { message: string; isRejection: boolean };

const path = workerData as string;

parentPort!.on('message', (request: SearchRequest) => parentPort!.postMessage(reply(...request)));

/**
 * Opens the store for each statement, because the connections of a process share the state of the
 * write-ahead log. An idle one would keep a deleted log in use after the writer has closed it.
 */
function reply(text: string, values: unknown[]): SearchReply {
  try {
    using database = openForReading(path);
    return { rows: queryRows(database, text, values) };
  } catch (error) {
    return { message: unavailable(error).message, isRejection: error instanceof StoreRejected };
  }
}
