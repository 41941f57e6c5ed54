import { REVISION_COLUMNS } from '../../tables/revision-rows.ts';
import { confirmEverythingBefore } from '../batch/confirm-commits.ts';
import { FLUSH, insertTexts } from '../batch/revision-statements.ts';
import { TABLE_GUARD } from '../schema/table-guard.ts';
import type { PlantServers, ServicePools, Topology } from './topology.ts';

/** The join with `first` finds one row for each plant that exists. */
const LATEST = `SELECT latest.* FROM plant_revision AS first CROSS JOIN LATERAL (
        SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = first.id ORDER BY revision DESC LIMIT 1
      ) AS latest WHERE first.id = ANY($1::bigint[]) AND first.revision = 1 AND ${TABLE_GUARD}`;

const AROUND = `SELECT near.* FROM unnest($1::bigint[], $2::integer[]) AS sent(id, revision) CROSS JOIN LATERAL (
          (SELECT ${REVISION_COLUMNS} FROM plant_revision
            WHERE id = sent.id AND revision IN (sent.revision - 1, sent.revision))
          UNION
          (SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = sent.id ORDER BY revision DESC LIMIT 1)
        ) AS near WHERE ${TABLE_GUARD} ORDER BY id, revision`;

/** The server of the connection stores the whole table. */
export const ONE_SERVER: Topology = {
  spansServers: false,
  commitWarnings: ['SyncRepWaitForLSN'],
  insertText: insertTexts(`CASE WHEN ${TABLE_GUARD} THEN id END, ${FLUSH}`),
  copyGuardText: `SELECT NULL, ${FLUSH} WHERE ${TABLE_GUARD}`,
  latestText: LATEST,
  revisionsAround: (ids, numbers) => ({ text: AROUND, values: [ids, numbers] }),
  confirmLatest: confirmEverythingBefore,
  tableSize: `pg_total_relation_size('plant_revision')`,
  newTableTexts: [],
  tableTexts: [],
  prepare: async () => {},
  openServers: async (_, pools) => serverOfAddress(pools),
};

/** Without other servers, all plants go through one queue and one pool. */
function serverOfAddress({ batchesInFlightMax, pool }: ServicePools): PlantServers {
  return {
    connections: 0,
    openQueue: open => open(batchesInFlightMax),
    use: (_, work) => pool.use(work),
    refresh: async () => {},
    warnings: async () => [],
    close: async () => {},
  };
}
