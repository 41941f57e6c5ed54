import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { CLIENT_LINK, PARTITIONS, PartitionedNetwork, STORE_LINK } from './partitioned-network.ts';
import type { Scenario } from './scenario.ts';
import { type Round, runOnStores } from './served-store.ts';

/** Random times below this are shorter or longer than the timeout of the store. */
const PARTITION_MAX_MS = 6_000;
/** Ends the cut connections on the server, as `tcp_user_timeout` does later. */
const TERMINATE_CONNECTIONS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_addr = '${STORE_LINK.there}'`;

interface Place {
  server: PostgresServer;
  network: PartitionedNetwork;
}

/** Two of three instances lose their link to PostgreSQL, in four ways. */
export const postgresPartition: Scenario = {
  name: 'postgres-partition',
  summary: 'a network partition between two of three instances and PostgreSQL, under load',
  needs: ['linux', 'root', 'ip', 'network namespaces'],
  secondsMin: 20,
  finds: ['respond-before-commit'],
  run: order =>
    runOnStores(order, {
      roundsPerStore: 12,
      async setUp(opened) {
        const network = opened.use(new PartitionedNetwork());
        const server = opened.use(
          await PostgresServer.start({ listen_addresses: `'127.0.0.1,${STORE_LINK.here}'` }),
        );
        await appendFile(join(server.folder, 'data', 'pg_hba.conf'), 'host all all samenet scram-sha-256\n');
        await server.query('SELECT pg_reload_conf()');
        const database = await server.createDatabase();
        const cutOff = {
          database: database.replace('127.0.0.1', STORE_LINK.here),
          args: ['--listen', `${CLIENT_LINK.there}:0`],
          prefix: network.prefix,
        };
        return { store: { database, instances: [{}, cutOff, cutOff] }, place: { server, network } };
      },
      round: partitionNetwork,
    }),
};

async function partitionNetwork({ store, place, random, number }: Round<Place>): Promise<string> {
  const { server, network } = place;
  const partition = PARTITIONS[number % PARTITIONS.length]!;
  network.begin(partition);
  try {
    await wait(random(PARTITION_MAX_MS / 2));
    if (random(2) === 0) await server.query(TERMINATE_CONNECTIONS);
    await wait(random(PARTITION_MAX_MS / 2));
    // The third instance still works.
    await store.load.stores(1);
  } finally {
    network.end(partition);
  }
  await store.recovered();
  return `partitions: ${partition}`;
}
