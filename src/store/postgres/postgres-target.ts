import { type CopyTarget, concurrentChange, type PlantRevision, StoreRejected } from '../plant-store.ts';
import { REVISION_COLUMNS } from '../revision-rows.ts';
import { PUT_TOKEN, putValues } from '../token-rows.ts';
import { prepareCoordinator } from './citus-workers.ts';
import type { Connection } from './connection.ts';
import { kindOf, sqlStateOf, unavailable } from './failure.ts';
import { HostSearch } from './host-search.ts';
import type { PostgresAddress } from './postgres-url.ts';
import { revisionInsert, rowOf } from './revision-table.ts';
import { applySchemaSteps, COPY_RIGHTS, checkRights } from './schema.ts';

const UNIQUE_VIOLATION = '23505';
/** Attempts of a transaction of `copy` that fails temporarily. */
const COPY_ATTEMPTS_MAX = 5;

/** Opens the target of a copy on one connection. After its loss the copy must be repeated. */
export async function openPostgresTarget(address: PostgresAddress): Promise<CopyTarget> {
  const search = new HostSearch(address, prepareCoordinator);
  const connection = await search.open(async opened => {
    await applySchemaSteps(opened);
    await checkRights(opened, COPY_RIGHTS);
    await opened.allowLongStatements();
  });
  return {
    insertRevisions: revisions =>
      inTransaction(connection, async () => {
        const inserted = await connection.run(revisionInsert(revisions, connection.isCitus));
        if (inserted.length < revisions.length) await checkStored(connection, revisions);
      }),
    putTokens: tokens =>
      inTransaction(connection, async () => {
        for (const token of tokens) {
          const writing = connection.run({ text: PUT_TOKEN, values: putValues(token) });
          const written = await writing.catch(error => {
            if (sqlStateOf(error) === UNIQUE_VIOLATION) return [];
            throw error;
          });
          // Another token has its id, hash or label, or it is revoked only in the target.
          if (written.length === 0) throw concurrentChange(`token ${JSON.stringify(token.label)}`);
        }
      }),
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

/**
 * Checks rows that already existed. The server may execute the last statement of a killed copy
 * after the next copy has read the target. Equal rows are correct.
 */
async function checkStored(connection: Connection, revisions: readonly PlantRevision[]): Promise<void> {
  const rows = await connection.run({
    text: `SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = ANY($1::bigint[])`,
    values: [[...new Set(revisions.map(({ plant }) => plant.id))]],
  });
  const stored = new Set(rows.map(row => JSON.stringify(row)));
  const other = revisions.find(each => !stored.has(JSON.stringify(rowOf(each))));
  if (other !== undefined) throw concurrentChange(`revision ${other.revision} of plant ${other.plant.id}`);
}

async function inTransaction(connection: Connection, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await connection.run({ text: 'BEGIN' });
      await work();
      await connection.commit({ text: 'COMMIT' });
      return;
    } catch (error) {
      if (kindOf(error) !== 'connectionLost') await connection.run({ text: 'ROLLBACK' });
      if (error instanceof StoreRejected) throw error;
      if (kindOf(error) !== 'retry' || attempt === COPY_ATTEMPTS_MAX) throw unavailable(error);
    }
  }
}
