import { folded } from '../../folded-text.ts';
import { queryRows } from '../queries.ts';
import { replyToCalls, threadData } from '../threads/reply-to-calls.ts';
import { openForReading } from './reading-database.ts';

let lastPart = { text: '', folded: '' };

/** Folds the searched part of a name once, because it is the same for each row of a search. */
function foldedPart(text: string): string {
  if (lastPart.text !== text) lastPart = { text, folded: folded(text) };
  return lastPart.folded;
}

export type SearchCall = [text: string, values: unknown[]];

/**
 * Opens the store for each statement, because the connections of a process share the state of the
 * write-ahead log. An idle connection would keep a deleted log in use after the writer closed it.
 */
replyToCalls(([text, values]: SearchCall) => {
  using opened = openForReading(threadData as string);
  const { database } = opened;
  // A damaged name may have another type.
  database.function('folded_contains', { deterministic: true }, (name, part) =>
    folded(String(name)).includes(foldedPart(String(part))) ? 1 : 0,
  );
  return queryRows(database, text, values);
});
