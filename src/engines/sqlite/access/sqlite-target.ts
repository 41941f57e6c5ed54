import { type CopyTarget, concurrentChangeError } from '../../copy-target.ts';
import { revisionName } from '../../tables/revision-rows.ts';
import { PUT_TOKEN, putValues } from '../../tables/token-rows.ts';
import { takeServeLock } from '../files/serve-lock.ts';
import { inTransaction, queryRows } from '../queries.ts';
import { INSERT_IF_ABSENT, insertRevision } from '../revision-table.ts';
import { orStoreFailure } from '../sqlite-errors.ts';
import { openForWriting } from '../writing-database.ts';

/** Opens the target of a copy and locks it for services. Writes block this thread. */
export async function openSqliteTarget(path: string): Promise<CopyTarget> {
  using parts = new DisposableStack();
  parts.use(takeServeLock(path));
  const database = parts.use(openForWriting(path).database);
  const insert = database.prepare(INSERT_IF_ABSENT);
  const write = async (work: () => void) => orStoreFailure(() => inTransaction(database, work));
  const opened = parts.move();
  return {
    insertRevisions: revisions =>
      write(() => {
        for (const each of revisions)
          if (insertRevision(insert, each) === 0) throw concurrentChangeError(revisionName(each));
      }),
    putTokens: tokens =>
      write(() => {
        for (const token of tokens) queryRows(database, PUT_TOKEN, putValues(token));
      }),
    [Symbol.asyncDispose]: async () => opened.dispose(),
  };
}
