import { replyToCalls, threadData } from './called-thread.ts';
import { openForReading } from './database.ts';
import { queryRows } from './queries.ts';

/** A statement, and its parameters `$1`, `$2` and so on. */
export type SearchCall = [text: string, values: unknown[]];

/**
 * Opens the store for each statement, because the connections of a process share the state of the
 * write-ahead log. An idle one would keep a deleted log in use after the writer has closed it.
 */
replyToCalls(([text, values]: SearchCall) => {
  using database = openForReading(threadData as string);
  return queryRows(database, text, values);
});
