import { setTimeout as wait } from 'node:timers/promises';
import { openReader } from '../src/store/open-store.ts';
import { faultsOf, type LoggedRequest } from './client-log.ts';
import { PostgresServer } from './postgres-server.ts';
import { type ServeProcess, startServe } from './program.ts';
import { seededRandom } from './seeded-random.ts';
import { SharedLoad } from './shared-load.ts';

const INSTANCES = 3;
/** The load goes on for this long at most before the next kill. */
const BETWEEN_KILLS_MS_MAX = 300;
/** Plants that are kept after each kill before the next. */
const KEPT_BETWEEN_KILLS = 100;

/** How PostgreSQL or an instance is ended, and then started again. What is frozen first has much in flight. */
export type Kill = 'stop PostgreSQL' | 'kill PostgreSQL' | 'freeze and kill PostgreSQL' | 'kill an instance';

export interface KillFigures {
  requests: number;
  /** Answered 200, by outcome. */
  created: number;
  revised: number;
  unchanged: number;
  /** Answered 5xx, or not at all. */
  unknown: number;
  /** As client-log.ts names them; none when each promise was kept. */
  faults: string[];
  storedRevisions: number;
  /** From the first byte of a request to its answer. */
  longestAnswerMs: number;
  /** For each kill of PostgreSQL: from its first answer after it until the first 200 of any instance. */
  backAfterMs: number[];
}

/** Ends PostgreSQL and `serve` processes on it, one thing after the other, under the load of clients of all instances. */
export async function killUnderLoad(
  kills: readonly Kill[],
  seed: number,
  progress: (line: string) => void = () => {},
): Promise<KillFigures> {
  const random = seededRandom(seed);
  const log: LoggedRequest[] = [];
  const backAfterMs: number[] = [];
  await using server = await PostgresServer.start();
  const database = await server.createDatabase();
  const instances: ServeProcess[] = [];
  try {
    while (instances.length < INSTANCES) instances.push(await startServe(database));
    const urls = instances.map((_, index) => () => instances[index]!.url);
    await using load = await SharedLoad.start(urls, database, log, seed);
    for (const [index, kill] of kills.entries()) {
      await load.keeps(KEPT_BETWEEN_KILLS);
      await wait(random(BETWEEN_KILLS_MS_MAX));
      if (kill === 'kill an instance') {
        const victim = random(INSTANCES);
        await instances[victim]!.stop('SIGKILL');
        instances[victim] = await startServe(database);
      } else {
        if (kill === 'freeze and kill PostgreSQL') {
          await server.hold('SIGSTOP');
          await wait(random(BETWEEN_KILLS_MS_MAX));
        }
        await (kill === 'stop PostgreSQL' ? server.stop() : server.kill());
        await wait(random(BETWEEN_KILLS_MS_MAX));
        await server.startAgain();
        const backAt = performance.now();
        await load.keeps(1);
        backAfterMs.push(performance.now() - backAt);
      }
      progress(`${index + 1} of ${kills.length}: ${kill}; ${log.length} requests so far`);
    }
    await load.keeps(KEPT_BETWEEN_KILLS);
    await load.stop();
    return await figuresOf(database, log, backAfterMs);
  } finally {
    await Promise.all(instances.map(each => each.stop('SIGKILL')));
  }
}

async function figuresOf(
  database: string,
  log: readonly LoggedRequest[],
  backAfterMs: number[],
): Promise<KillFigures> {
  const reader = await openReader(database);
  const stored = await Array.fromAsync(reader.revisions());
  await reader.close();
  const answered = (outcome: string): number =>
    log.filter(({ answer }) => answer?.outcome === outcome).length;
  return {
    requests: log.length,
    created: answered('created'),
    revised: answered('revised'),
    unchanged: answered('unchanged'),
    unknown: log.filter(({ answer }) => answer === undefined || answer.status >= 500).length,
    faults: faultsOf(log, stored),
    storedRevisions: stored.length,
    longestAnswerMs: log.reduce((most, { sentAt, answeredAt }) => Math.max(most, answeredAt - sentAt), 0),
    backAfterMs,
  };
}
