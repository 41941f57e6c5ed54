import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { CLIENT_LINK, PARTITIONS, PartitionedNetwork, STORE_LINK } from './partitioned-network.ts';
import type { Scenario } from './scenario.ts';
import { type Round, runOnStores } from './served-store.ts';

/** Shorter and longer than an operation of the store may take. */
const PARTED_MS_MAX = 6_000;
/** What a server does itself, sooner or later, with clients that do not answer (`tcp_user_timeout`). */
const GIVE_UP_CONNECTIONS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_addr = '${STORE_LINK.there}'`;

interface Place {
  server: PostgresServer;
  network: PartitionedNetwork;
}

/** Two instances lose their way to PostgreSQL, in four manners, and a third one does not. */
export const postgresPartition: Scenario = {
  name: 'postgres-partition',
  summary: 'a partition between two instances and PostgreSQL, while a third one goes on, under load',
  needs: ['linux', 'root', 'ip', 'network namespaces'],
  secondsMin: 20,
  finds: ['answer-before-commit'],
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
      round: part,
    }),
};

async function part({ store, place, random, number }: Round<Place>): Promise<string> {
  const { server, network } = place;
  const partition = PARTITIONS[number % PARTITIONS.length]!;
  network.begin(partition);
  try {
    await wait(random(PARTED_MS_MAX / 2));
    if (random(2) === 0) await server.query(GIVE_UP_CONNECTIONS);
    await wait(random(PARTED_MS_MAX / 2));
    // The third instance goes on.
    await store.load.keeps(1);
  } finally {
    network.end(partition);
  }
  await store.recovered();
  return `partitions: ${partition}`;
}
