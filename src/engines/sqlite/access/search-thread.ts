import { nameMatcher } from '../../search/folded-text.ts';
import { queryRows } from '../queries.ts';
import { replyToCalls, threadData } from '../threads/reply-to-calls.ts';
import { openForReading } from './reading-database.ts';

let last = { part: '', matches: nameMatcher('') };

/** Folds the searched part of a name once, because it is the same for each row of a search. */
function matcherOf(part: string): (name: string) => boolean {
  if (last.part !== part) last = { part, matches: nameMatcher(part) };
  return last.matches;
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
  database.function('name_contains', { deterministic: true }, (name, part) =>
    matcherOf(String(part))(String(name)) ? 1 : 0,
  );
  return queryRows(database, text, values);
});
