import type { NewPlant } from '../../../core/contract/plant.ts';
import { REVISION_COLUMNS } from '../../tables/revision-rows.ts';
import { FLUSH, insertTexts } from '../batch/revision-statements.ts';
import type { Connection } from '../connection.ts';
import { ONE_SERVER } from '../topology/one-server.ts';
import type { PlantServers, ServicePools, Topology } from '../topology/topology.ts';
import { readShards } from './citus-shards.ts';
import { CitusWorkers } from './citus-workers.ts';
import { DISTRIBUTE, FORBID_LOGICAL_MOVES } from './distributed-table.ts';
import { rejectLosingWorkers } from './hidden-workers.ts';
import { prepareServer, rejectWorker } from './prepare-server.ts';
import { rejectDangerousTable } from './table-check.ts';

/**
 * Citus rejects a join with an array of ids of several shards, so this joins the table with itself.
 * Citus asks every worker if a part of the join has no filter on ids. The `OR` keeps this filter out
 * of the index search, which would run for each pair of ids.
 */
const LATEST = `SELECT latest.* FROM plant_revision AS first CROSS JOIN LATERAL (
        SELECT ${REVISION_COLUMNS} FROM plant_revision
        WHERE id = first.id AND (id = ANY($1::bigint[]) OR id = ($1::bigint[])[1]) ORDER BY revision DESC LIMIT 1
      ) AS latest WHERE first.id = ANY($1::bigint[]) AND first.revision = 1 AND true`;

/** Citus rejects the join of one server. This statement may return more revisions, which do no harm. */
const AROUND = `SELECT ${REVISION_COLUMNS} FROM plant_revision
        WHERE id = ANY($1::bigint[]) AND revision >= $2 ORDER BY id, revision`;

/**
 * Citus spreads the table over workers. It rejects `TABLE_GUARD` and `FLUSH` within a statement for
 * workers. So {@link CitusWorkers.use} checks the table, and the role has `synchronous_commit`.
 */
export const CITUS: Topology = {
  spansServers: true,
  // Citus repeats each warning of a worker with a function of its own.
  commitWarnings: [...ONE_SERVER.commitWarnings, 'DefaultCitusNoticeReceiver'],
  insertText: insertTexts('CASE WHEN true THEN id END'),
  // A COPY needs a second statement here also because Citus takes 228 ms for it outside a transaction.
  copyGuardText: `SELECT NULL, ${FLUSH} WHERE true`,
  latestText: LATEST,
  revisionsAround: (ids, numbers) => ({ text: AROUND, values: [ids, Math.min(...numbers) - 1] }),
  confirmLatest,
  tableSize: `citus_total_relation_size('plant_revision')`,
  newTableTexts: [DISTRIBUTE],
  tableTexts: [FORBID_LOGICAL_MOVES],
  async prepare(connection, use) {
    await rejectWorker(connection);
    if (use === 'write') await prepareServer(connection);
  },
  openServers,
};

async function confirmLatest(
  connection: Connection,
  plants: readonly { plant: NewPlant }[],
  missing: readonly { plant: NewPlant }[],
): Promise<void> {
  // If a shard has moved to another server, Citus executes this statement there.
  await connection.commit({
    name: 'confirm',
    text: `SELECT CASE WHEN current_setting('synchronous_standby_names') <> ''
        THEN pg_logical_emit_message(true, 'plant-store', '') END
      FROM plant_revision WHERE id = ANY($1::bigint[]) LIMIT 1`,
    values: [plants.map(({ plant }) => plant.id)],
  });
  // Without a row, that statement sends no message. A count always has one, but Citus executes a
  // count on the server of the plant only if it is of one id.
  for (const { plant } of missing) {
    await connection.commit({
      name: 'confirm_missing',
      text: `SELECT CASE WHEN current_setting('synchronous_standby_names') <> ''
          THEN pg_logical_emit_message(true, 'plant-store', '') END
        FROM (SELECT count(*) FROM plant_revision WHERE id = $1::bigint) AS counted`,
      values: [plant.id],
    });
  }
}

async function openServers(coordinator: Connection, pools: ServicePools): Promise<PlantServers> {
  await rejectDangerousTable(coordinator);
  const shards = await readShards(coordinator);
  // The table was made before the extension, and is on the coordinator only.
  if (shards.length === 0) return await ONE_SERVER.openServers(coordinator, pools);
  if (pools.address.citus === 'coordinator') await rejectLosingWorkers(coordinator);
  return new CitusWorkers(shards, pools);
}
