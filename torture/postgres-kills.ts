import { setTimeout as wait } from 'node:timers/promises';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { SharedLoad } from '../test/harness/shared-load.ts';
import { spread } from './figures.ts';
import type { Ordeal, OrdealOrder, OrdealResult, Weakness } from './ordeal.ts';
import {
  figuresOf,
  INSTANCES,
  type InstancesFigures,
  RoundsTally,
  ServedInstances,
} from './postgres-instances.ts';
import { lateRecoveries } from './recovery.ts';

/** The load goes on for this long at most before the next kill. */
const BETWEEN_KILLS_MS_MAX = 300;
/** Plants that are kept after each kill before the next. */
const KEPT_BETWEEN_KILLS = 100;

/** How PostgreSQL or an instance is ended, and then started again. What is frozen first has much in flight. */
export type Kill = 'stop PostgreSQL' | 'kill PostgreSQL' | 'freeze and kill PostgreSQL' | 'kill an instance';

/** One after the other, on one store. */
const ROUND: readonly Kill[] = [
  'kill PostgreSQL',
  'kill an instance',
  'freeze and kill PostgreSQL',
  'kill an instance',
  'kill PostgreSQL',
  'kill an instance',
  'freeze and kill PostgreSQL',
  'kill an instance',
  'stop PostgreSQL',
  'kill an instance',
];

export interface KillFigures extends InstancesFigures {
  kills: number;
  /** For each kill of PostgreSQL: from its first answer after it until the first 200 of any instance. */
  backAfterMs: number[];
}

/** `kill -9` of PostgreSQL and of instances, and every fifth end of PostgreSQL in good order. */
export const postgresKills: Ordeal = {
  name: 'postgres-kills',
  summary: 'kill -9 of PostgreSQL and of three instances on it, in turn, under load',
  finds: ['synchronous-off', 'answer-before-commit'],
  run,
};

async function run({ seed, budgetMs, weakness, signal, tell }: OrdealOrder): Promise<OrdealResult> {
  const untilMs = performance.now() + budgetMs;
  const isOver = (): boolean => signal.aborted || performance.now() > untilMs;
  const tally = new RoundsTally();
  const backAfterMs: number[] = [];
  let kills = 0;
  for (let round = 1; !isOver(); round++) {
    const figures = await killUnderLoad(ROUND, seed + round, { weakness, isOver });
    tally.add(`round ${round}`, figures);
    kills += figures.kills;
    backAfterMs.push(...figures.backAfterMs);
    tell(`${kills} kills, ${tally.faults.length} faults`);
  }
  return {
    faults: [...tally.faults, ...lateRecoveries(...backAfterMs)],
    figures: { kills, ...tally.figures, 'first 200 after PostgreSQL was back': spread(backAfterMs, 'ms') },
  };
}

interface KillOptions {
  weakness?: Weakness | undefined;
  /** Leaves off before the next kill. */
  isOver?: () => boolean;
}

/** Ends PostgreSQL and `serve` processes on it, one thing after the other, under the load of clients of all instances. */
export async function killUnderLoad(
  kills: readonly Kill[],
  seed: number,
  { weakness, isOver = () => false }: KillOptions = {},
): Promise<KillFigures> {
  const random = seededRandom(seed);
  const log: LoggedRequest[] = [];
  const backAfterMs: number[] = [];
  await using server = await PostgresServer.start();
  const database = await server.createDatabase();
  await using instances = await ServedInstances.start(database, weakness);
  let killed = 0;
  await using load = await SharedLoad.start(instances.urls, database, log, seed);
  for (const kill of kills) {
    if (isOver()) break;
    await load.keeps(KEPT_BETWEEN_KILLS);
    await wait(random(BETWEEN_KILLS_MS_MAX));
    if (kill === 'kill an instance') {
      await instances.killAndReplace(random(INSTANCES));
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
    killed++;
  }
  await load.keeps(KEPT_BETWEEN_KILLS);
  await load.stop();
  return { ...(await figuresOf(database, log)), kills: killed, backAfterMs };
}
