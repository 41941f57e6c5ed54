import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { PROGRAM, startServe } from '../test/harness/program.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { readGreeting } from '../test/harness/serve-greeting.ts';
import { SharedLoad } from '../test/harness/shared-load.ts';
import { spread } from './figures.ts';
import type { Ordeal, OrdealOrder, OrdealResult } from './ordeal.ts';
import { CLIENT_LINK, PARTITIONS, PartitionedNetwork, STORE_LINK } from './partitioned-network.ts';
import { figuresOf, RoundsTally, weakeningArgs } from './postgres-instances.ts';
import { lateRecoveries } from './recovery.ts';

/** One more has the store on its own side. */
const CUT_OFF_INSTANCES = 2;
/** On one store; beyond that, most of the time would go into comparing what is stored. */
const PARTITIONS_OF_A_ROUND = 12;
const KEPT_BETWEEN = 100;
/** Shorter and longer than an operation of the store may take. */
const PARTED_MS_MAX = 6_000;
/** What a server does itself, sooner or later, with clients that do not answer (`tcp_user_timeout`). */
const GIVE_UP_CONNECTIONS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_addr = '${STORE_LINK.there}'`;

/** Two instances lose their way to PostgreSQL, in four manners, and a third one does not. */
export const postgresPartition: Ordeal = {
  name: 'postgres-partition',
  summary: 'a partition between two instances and PostgreSQL, while a third one goes on, under load',
  finds: ['answer-before-commit'],
  obstacle: PartitionedNetwork.obstacle,
  run,
};

async function run({ seed, budgetMs, weakness, signal, tell }: OrdealOrder): Promise<OrdealResult> {
  const untilMs = performance.now() + budgetMs;
  const isOver = (): boolean => signal.aborted || performance.now() > untilMs;
  const nodeArgs = weakeningArgs(weakness);
  const tally = new RoundsTally();
  const backAfterMs: number[] = [];
  using network = new PartitionedNetwork();
  for (let round = 1; !isOver(); round++) {
    const random = seededRandom(seed + round);
    const log: LoggedRequest[] = [];
    await using server = await PostgresServer.start({
      listen_addresses: `'127.0.0.1,${STORE_LINK.here}'`,
    });
    await appendFile(join(server.folder, 'data', 'pg_hba.conf'), 'host all all samenet scram-sha-256\n');
    await server.query('SELECT pg_reload_conf()');
    const database = await server.createDatabase();
    const started: ChildProcess[] = [];
    try {
      const near = await startServe(database, [], { nodeArgs });
      started.push(near.child);
      const farDatabase = database.replace('127.0.0.1', STORE_LINK.here);
      const urls = [near.url];
      while (urls.length <= CUT_OFF_INSTANCES) {
        const child = serveIn(network, farDatabase, nodeArgs);
        started.push(child);
        urls.push((await readGreeting(child)).url);
      }
      await using load = await SharedLoad.start(
        urls.map(url => () => url),
        database,
        log,
        seed + round,
      );
      for (let count = 0; count < PARTITIONS_OF_A_ROUND && !isOver(); count++) {
        await load.keeps(KEPT_BETWEEN);
        const partition = PARTITIONS[count % PARTITIONS.length]!;
        network.begin(partition);
        try {
          await wait(random(PARTED_MS_MAX / 2));
          if (random(2) === 0) await server.query(GIVE_UP_CONNECTIONS);
          await wait(random(PARTED_MS_MAX / 2));
          // The third instance goes on.
          await load.keeps(1);
        } finally {
          network.end(partition);
        }
        const overAt = performance.now();
        const keptAt = await load.keptByEachAfter(overAt);
        backAfterMs.push(Math.max(...keptAt) - overAt);
      }
      await load.stop();
      tally.add(`round ${round}`, await figuresOf(database, log));
    } finally {
      await Promise.all(started.map(end));
    }
    tell(`${backAfterMs.length} partitions, ${tally.faults.length} faults`);
  }
  return {
    faults: [...tally.faults, ...lateRecoveries(...backAfterMs)],
    figures: {
      partitions: backAfterMs.length,
      ...tally.figures,
      'first 200 of the last instance after the partition': spread(backAfterMs, 'ms'),
    },
  };
}

function serveIn(network: PartitionedNetwork, database: string, nodeArgs: string[]): ChildProcess {
  const [program, ...args] = network.prefix;
  const serve = [process.execPath, ...nodeArgs, PROGRAM, 'serve', '--database', database];
  const listen = ['--listen', `${CLIENT_LINK.there}:0`, '--ops', '127.0.0.1:0'];
  return spawn(program, [...args, ...serve, ...listen], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH },
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
