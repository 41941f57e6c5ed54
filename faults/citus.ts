import { setTimeout as wait } from 'node:timers/promises';
import { until } from '../test/harness/until.ts';
import { type CitusNode, nodesOf, query } from './citus-cluster.ts';
import type { Scenario } from './scenario.ts';
import { type Round, runOnStores, type ServedStore } from './served-store.ts';

const INSTANCES = 3;
/** Maximum pause before a fault. */
const PAUSE_MAX_MS = 300;
/** Maximum absence of a server. After 3 s the plants of a worker get 503. */
const AWAY_MAX_MS = 5_000;
/** A service learns of a revoked token within this time. */
const REVOKED_MAX_MS = 5_000;
/** Number of the last requests whose plants a transaction in doubt locks. */
const IN_DOUBT_REQUESTS = 100;
/** The lock timeout of a command that copies the table. */
const CONVERSION_MAX_MS = 2_500;
const LOCK_NOT_AVAILABLE = '55P03';
/** From the start of a fault until every statement that was sent before it has ended. */
const IN_FLIGHT_MAX_MS = 500;

interface Cluster {
  url: URL;
  coordinator: CitusNode;
  workers: readonly CitusNode[];
}

type CitusRound = Round<Cluster>;

/** The faults, in order. */
const FAULTS: Record<string, (round: CitusRound, worker: CitusNode) => Promise<void>> = {
  'kills of a worker': (_, worker) => worker.crash(),
  'kills of the coordinator': ({ place }) => place.coordinator.crash(),
  'frozen coordinators': withoutCoordinator,
  'frozen workers': ({ random }, worker) => worker.freezeFor(random(AWAY_MAX_MS)),
  'kills of all workers': async ({ place }) => {
    await Promise.all(place.workers.map(worker => worker.crash()));
  },
  'cut connections to a worker': async (_, worker) => {
    await worker.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE pid <> pg_backend_pid() AND application_name ~ '^(plant-store|citus_internal)'`);
  },
  'cut connections to the coordinator': async ({ place: { coordinator } }) => {
    await coordinator.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE pid <> pg_backend_pid() AND application_name = 'plant-store'`);
  },
  'standbys of a worker away': withoutStandby,
  'moved shards': async ({ place: { url, workers } }) => {
    const [shard] = await query(
      url,
      `SELECT shardid, nodename || ':' || nodeport AS address, nodename, nodeport FROM citus_shards
        WHERE table_name = 'plant_revision'::regclass ORDER BY random() LIMIT 1`,
    );
    const target = workers.find(({ address }) => address !== shard!.address)!;
    await query(
      url,
      `SELECT citus_move_shard_placement(${shard!.shardid}, '${shard!.nodename}', ${shard!.nodeport},
        '${target.host}', ${target.port}, 'block_writes')`,
    );
  },
  'drained and added workers': drainAndAdd,
  'in-doubt transactions': withTransactionInDoubt,
  'attempts to undistribute the table': round => convertTable(round, `undistribute_table('plant_revision')`),
  'attempts to change the number of shards': round =>
    convertTable(round, `alter_distributed_table('plant_revision', shard_count := 6)`),
  'added columns': addColumn,
  'kills of an instance': ({ store, random }) => store.replace(random(INSTANCES), 'SIGKILL').then(() => {}),
};

/**
 * Injects faults into a Citus cluster on this machine. Each store is in a schema of its own, which
 * is removed afterwards.
 *
 * @param address of the coordinator, as a superuser
 */
export function citusFaults(address: string): Scenario {
  return {
    name: 'citus',
    summary: 'kill -9, pauses, cut connections, lost standbys and moved shards of Citus, under load',
    needs: ['linux', 'root'],
    secondsMin: 60,
    finds: ['respond-before-commit'],
    run: order =>
      runOnStores(order, {
        roundsPerStore: Object.keys(FAULTS).length,
        async setUp(opened, store) {
          const url = new URL(address);
          const schema = `plant_store_fault_${process.pid}_${store}`;
          await query(url, `CREATE SCHEMA ${schema}`);
          opened.defer(async () => void (await query(new URL(address), `DROP SCHEMA ${schema} CASCADE`)));
          url.search = `?options=${encodeURIComponent(`-c search_path=${schema}`)}`;
          const [coordinator, ...workers] = await nodesOf(url);
          return { store: { database: url.href }, place: { url, coordinator: coordinator!, workers } };
        },
        round: async round => {
          const { store, place, random, number } = round;
          const names = Object.keys(FAULTS);
          const name = names[number % names.length]!;
          await wait(random(PAUSE_MAX_MS));
          await FAULTS[name]!(round, place.workers[random(place.workers.length)]!);
          await store.recovered();
          return name;
        },
      }),
  };
}

/** Without the coordinator no service learns of a revoked token, so none may confirm plants. */
async function withoutCoordinator({ store, place: { coordinator }, random }: CitusRound): Promise<void> {
  const since = performance.now();
  await coordinator.freezeFor(REVOKED_MAX_MS + random(AWAY_MAX_MS));
  const until = performance.now();
  store.faults.push(
    ...confirmedBetween(store, since + REVOKED_MAX_MS, until).map(
      ({ plant }) => `plant ${plant.id} was confirmed, while nobody could revoke its token`,
    ),
  );
}

function confirmedBetween({ log }: ServedStore, since: number, until: number): ServedStore['log'] {
  return log.filter(
    ({ sentAt, respondedAt, response }) => sentAt > since && respondedAt < until && response?.status === 200,
  );
}

/**
 * Moves all shards away from a worker, removes it, adds it again, and moves shards to it. The
 * default of Citus 13.2, logical replication, lost plants here in half of the runs.
 */
async function drainAndAdd({ place: { url } }: CitusRound, { host, port }: CitusNode): Promise<void> {
  await query(url, `SELECT citus_drain_node('${host}', ${port}, 'block_writes')`);
  // Otherwise the shards cannot move back: their old tables still exist on the worker.
  await query(url, 'CALL citus_cleanup_orphaned_resources()');
  await query(url, `SELECT citus_remove_node('${host}', ${port})`);
  await query(url, `SELECT citus_add_node('${host}', ${port})`);
  await query(url, `SELECT rebalance_table_shards('plant_revision', shard_transfer_mode => 'block_writes')`);
}

/**
 * Leaves a prepared transaction on a worker, like a coordinator that dies during a two-phase
 * commit. The transaction locks the next revisions of some plants, until Citus rolls it back.
 */
async function withTransactionInDoubt(
  { store, place: { url } }: CitusRound,
  worker: CitusNode,
): Promise<void> {
  const ids = [...new Set(store.log.slice(-IN_DOUBT_REQUESTS).map(({ plant }) => plant.id))];
  const [shard] = await query(
    url,
    `SELECT shard_name AS name FROM citus_shards WHERE table_name = 'plant_revision'::regclass
      AND nodename || ':' || nodeport = '${worker.address}' ORDER BY random() LIMIT 1`,
  );
  await worker.query(`BEGIN;
    SET LOCAL citus.enable_manual_changes_to_shards = on;
    ${nextRevisions(shard!.name!, ids)};
    PREPARE TRANSACTION 'citus_0_${process.pid}_0_0'`);
  await until('Citus rolls the transaction back', async () => {
    const transactions = await worker.query('SELECT 1 FROM pg_prepared_xacts');
    return transactions.length === 0;
  });
}

/** @returns a statement that inserts the next nine revisions of plants into a table */
export function nextRevisions(table: string, ids: readonly bigint[]): string {
  return `INSERT INTO ${table}
    SELECT id, max(revision) + next, 'in doubt', NULL, 0, 1, 0 FROM ${table}, generate_series(1, 9) AS next
    WHERE id IN (${ids.join(',')}) GROUP BY id, next ON CONFLICT DO NOTHING`;
}

/**
 * Runs a command that copies the table while plants arrive. It would lose the ones that it misses, so
 * the instances hold a lock for which it waits.
 */
async function convertTable({ store, place: { url } }: CitusRound, call: string): Promise<void> {
  const ended = await query(url, `SET lock_timeout = '${CONVERSION_MAX_MS}ms'; SELECT ${call}`).then(
    () => 'success',
    ({ code, message }) => (code === LOCK_NOT_AVAILABLE ? LOCK_NOT_AVAILABLE : message),
  );
  if (ended !== LOCK_NOT_AVAILABLE) store.faults.push(`${call} ended with ${ended}`);
}

/** A schema step may add a column while instances of the old version run. */
async function addColumn({ store, place: { url } }: CitusRound): Promise<void> {
  await query(url, 'ALTER TABLE plant_revision ADD COLUMN height integer');
  await store.recovered();
  await query(url, 'ALTER TABLE plant_revision DROP COLUMN height');
}

/** No plant of a worker may be confirmed while its synchronous standby is away. */
async function withoutStandby({ store, place, random }: CitusRound, worker: CitusNode): Promise<void> {
  const setStandbys = async (names: string): Promise<void> => {
    await worker.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await worker.query('SELECT pg_reload_conf()');
  };
  await setStandbys('away');
  await wait(IN_FLIGHT_MAX_MS);
  const since = performance.now();
  await wait(AWAY_MAX_MS / 2 + random(AWAY_MAX_MS));
  const until = performance.now();
  await setStandbys('');
  const confirmed = confirmedBetween(store, since, until);
  store.faults.push(...(await falselyConfirmed(confirmed, place.url, worker.address)));
}

async function falselyConfirmed(confirmed: ServedStore['log'], url: URL, address: string): Promise<string[]> {
  if (confirmed.length === 0) return [];
  const ids = confirmed.map(({ plant }) => plant.id).join(',');
  const rows = await query(
    url,
    `SELECT id FROM unnest('{${ids}}'::bigint[]) AS id JOIN citus_shards
      ON shardid = get_shard_id_for_distribution_column('plant_revision', id)
      WHERE nodename || ':' || nodeport = '${address}'`,
  );
  return rows.map(({ id }) => `false 200: plant ${id}, while the standby of ${address} was away`);
}
