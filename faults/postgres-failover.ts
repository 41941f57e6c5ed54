import { setTimeout as wait } from 'node:timers/promises';
import { SynchronousPair } from '../test/harness/synchronous-pair.ts';
import type { Scenario } from './scenario.ts';
import { type Round, runOnStores } from './served-store.ts';

/** Plants that are confirmed before the primary goes, and after the standby took over. */
const STORED_BEFORE_AND_AFTER = 200;
/**
 * The standby is promoted this long after the primary went, and up to so much later. A primary that is held is missed
 * when a statement has had its time; the search for another is to be on while there is none yet.
 */
const PROMOTED_AFTER_MS = { killed: 0, held: 2_500 };
const PROMOTED_LATER_MS_MAX = 2_500;

/** The primary killed (every process of it at once) or held in turn, and named first or second in turn. */
export const postgresFailover: Scenario = {
  name: 'postgres-failover',
  summary:
    'the primary of PostgreSQL goes under the load of three instances, and its synchronous standby takes over',
  needs: [],
  secondsMin: 15,
  finds: ['synchronous-off', 'answer-before-commit'],
  run: order =>
    runOnStores(order, {
      roundsPerStore: 1,
      async setUp(opened, store) {
        const pair = opened.use(await SynchronousPair.start());
        const first = (store - 1) % 4 < 2 ? 'primary' : 'standby';
        return { store: { database: pair.url(first), readAs: pair.standbyDatabase }, place: pair };
      },
      round: failOver,
    }),
};

async function failOver({ store, place: pair, random, number }: Round<SynchronousPair>): Promise<string> {
  const how = number % 2 === 0 ? 'killed' : 'held';
  await store.load.keeps(STORED_BEFORE_AND_AFTER);
  await (how === 'killed' ? pair.primary.kill() : pair.primary.hold('SIGSTOP'));
  await wait(PROMOTED_AFTER_MS[how] + random(PROMOTED_LATER_MS_MAX));
  await store.recovered(await pair.promote());
  await store.load.keeps(STORED_BEFORE_AND_AFTER);
  return `primary ${how}`;
}
