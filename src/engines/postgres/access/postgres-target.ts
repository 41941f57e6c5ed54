import { type CopyTarget, concurrentChangeError } from '../../copy-target.ts';
import { PUT_TOKEN, putValues } from '../../tables/token-rows.ts';
import { revisionInsert } from '../batch/revision-statements.ts';
import { HostSearch } from '../connections/host-search.ts';
import { orStoreFailure } from '../postgres-errors.ts';
import type { PostgresAddress } from '../postgres-url.ts';
import { applySchemaSteps, COPY_RIGHTS, rejectMissingRights } from '../schema/schema.ts';

/** Opens the target of a copy on one connection. After its loss the copy must be repeated. */
export async function openPostgresTarget(address: PostgresAddress): Promise<CopyTarget> {
  const search = new HostSearch(address, opened => opened.topology.prepare(opened, 'write'));
  const { connection } = await search.open(async opened => {
    await applySchemaSteps(opened);
    await rejectMissingRights(opened, COPY_RIGHTS);
    await opened.setStatementTimeout();
  });
  const inTransaction = (work: () => Promise<void>) => orStoreFailure(() => connection.transaction(work));
  return {
    insertRevisions: revisions =>
      inTransaction(async () => {
        const inserted = await connection.run(revisionInsert(revisions, connection.topology));
        if (inserted.length < revisions.length) throw concurrentChangeError('a revision');
      }),
    putTokens: tokens =>
      inTransaction(async () => {
        for (const token of tokens) await connection.run({ text: PUT_TOKEN, values: putValues(token) });
      }),
    [Symbol.asyncDispose]: () => connection.close(),
  };
}
