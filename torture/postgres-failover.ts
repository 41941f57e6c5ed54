import { setTimeout as wait } from 'node:timers/promises';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { SharedLoad } from '../test/harness/shared-load.ts';
import { SynchronousPair } from '../test/harness/synchronous-pair.ts';
import { spread } from './figures.ts';
import type { Ordeal, OrdealOrder, OrdealResult, Weakness } from './ordeal.ts';
import { figuresOf, type InstancesFigures, RoundsTally, ServedInstances } from './postgres-instances.ts';
import { lateRecoveries } from './recovery.ts';

/** Plants that are kept before the primary goes, and after the standby took over. */
const KEPT_BEFORE_AND_AFTER = 200;
/**
 * The standby is promoted this long after the primary went, and up to so much later. A primary that is held is missed
 * when a statement has had its time; the search for another is to be on while there is none yet.
 */
const PROMOTED_AFTER_MS = { kill: 0, hold: 2_500 };
const PROMOTED_LATER_MS_MAX = 2_500;

export interface FailoverFigures extends InstancesFigures {
  /** Sent before the standby took writes, and answered after. */
  underWay: number;
  /** From the moment the standby took writes until the first 200 of any instance, and of the last one. */
  firstBackAfterMs: number;
  allBackAfterMs: number;
}

/** The primary killed or held in turn, and named first or second in turn. */
export const postgresFailover: Ordeal = {
  name: 'postgres-failover',
  summary:
    'the primary of PostgreSQL goes under the load of three instances, and its synchronous standby takes over',
  finds: ['synchronous-off', 'answer-before-commit'],
  run,
};

async function run({ seed, budgetMs, weakness, signal, tell }: OrdealOrder): Promise<OrdealResult> {
  const untilMs = performance.now() + budgetMs;
  const tally = new RoundsTally();
  const firstBackAfterMs: number[] = [];
  const allBackAfterMs: number[] = [];
  for (let round = 1; !signal.aborted && performance.now() < untilMs; round++) {
    const how = round % 2 === 1 ? 'kill' : 'hold';
    const firstHost = round % 4 < 2 ? 'primary' : 'standby';
    const figures = await failOverUnderLoad(how, firstHost, seed + round, weakness);
    tally.add(`round ${round}`, figures);
    firstBackAfterMs.push(figures.firstBackAfterMs);
    allBackAfterMs.push(figures.allBackAfterMs);
    tell(`${round} failovers, ${tally.faults.length} faults`);
  }
  return {
    faults: [...tally.faults, ...lateRecoveries(...allBackAfterMs)],
    figures: {
      failovers: firstBackAfterMs.length,
      ...tally.figures,
      'first 200 after the standby took writes': spread(firstBackAfterMs, 'ms'),
      'first 200 of the last instance': spread(allBackAfterMs, 'ms'),
    },
  };
}

/**
 * Takes the primary away under the load of three instances, and promotes the standby.
 *
 * @param how `kill` ends every process of the primary at once; `hold` lets it keep every connection and answer nothing
 */
export async function failOverUnderLoad(
  how: 'kill' | 'hold',
  firstHost: 'primary' | 'standby',
  seed: number,
  weakness?: Weakness,
): Promise<FailoverFigures> {
  const random = seededRandom(seed);
  const log: LoggedRequest[] = [];
  await using pair = await SynchronousPair.start();
  await using instances = await ServedInstances.start(pair.url(firstHost), weakness);
  await using load = await SharedLoad.start(instances.urls, pair.database, log, seed);
  await load.keeps(KEPT_BEFORE_AND_AFTER);
  await (how === 'kill' ? pair.primary.kill() : pair.primary.hold('SIGSTOP'));
  await wait(PROMOTED_AFTER_MS[how] + random(PROMOTED_LATER_MS_MAX));
  const takesWritesAt = await pair.promote();
  const backAt = await load.keptByEachAfter(takesWritesAt);
  await load.keeps(KEPT_BEFORE_AND_AFTER);
  await load.stop();
  return {
    ...(await figuresOf(pair.standbyDatabase, log)),
    underWay: log.filter(each => each.sentAt < takesWritesAt && each.answeredAt > takesWritesAt).length,
    firstBackAfterMs: Math.min(...backAt) - takesWritesAt,
    allBackAfterMs: Math.max(...backAt) - takesWritesAt,
  };
}
