import { type CopyTarget, concurrentChangeError } from '../../copy-target.ts';
import { PUT_TOKEN, putValues } from '../../tables/token-rows.ts';
import { takeServeLock } from '../files/serve-lock.ts';
import { inTransaction, queryRows } from '../queries.ts';
import { orUnavailable } from '../sqlite-errors.ts';
import { openForWriting } from '../writing-database.ts';

/** Opens the target of a copy and locks it for services. Writes block this thread. */
export async function openSqliteTarget(path: string): Promise<CopyTarget> {
  using parts = new DisposableStack();
  parts.use(takeServeLock(path));
  const database = parts.use(openForWriting(path).database);
  const insert = database.prepare(
    'INSERT INTO plant_revision VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const write = async (work: () => void) => orUnavailable(() => inTransaction(database, work));
  const opened = parts.move();
  return {
    insertRevisions: revisions =>
      write(() => {
        for (const { plant, revision, recordedAt, recordedBy, checksum } of revisions) {
          const { id, name, tag = null } = plant;
          // A copy has only intact revisions, so each has a checksum.
          const { changes } = insert.run(id, revision, name, tag, recordedAt, recordedBy, checksum!);
          if (changes === 0) throw concurrentChangeError(`revision ${revision} of plant ${id}`);
        }
      }),
    putTokens: tokens =>
      write(() => {
        for (const token of tokens) queryRows(database, PUT_TOKEN, putValues(token));
      }),
    [Symbol.asyncDispose]: async () => opened.dispose(),
  };
}
