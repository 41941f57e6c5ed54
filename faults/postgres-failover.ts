import { setTimeout as wait } from 'node:timers/promises';
import { type SynchronousPair, startSynchronousPair } from '../test/harness/synchronous-pair.ts';
import type { Scenario } from './scenario.ts';
import { type Round, runOnStores } from './served-store.ts';

/** Confirmed plants before the primary fails, and again after the promotion. */
const STORED_BEFORE_AND_AFTER = 200;
/**
 * The delay of the promotion, which grows by a random part. The instances notice a stopped primary
 * after a statement timeout. Then they must search while there is no primary yet.
 */
const PROMOTION_DELAY_MS = { killed: 0, stopped: 2_500 };
const PROMOTION_DELAY_RANDOM_MS = 2_500;

/** Alternately kills and stops (SIGSTOP) the primary, which is the first or second host. */
export const postgresFailover: Scenario = {
  name: 'postgres-failover',
  summary:
    'the primary of PostgreSQL fails under load from three instances, and its synchronous standby takes over',
  needs: [],
  secondsMin: 15,
  finds: ['synchronous-off', 'respond-before-commit'],
  run: order =>
    runOnStores(order, {
      roundsPerStore: 1,
      async setUp(opened, store) {
        const pair = opened.use(await startSynchronousPair());
        const first = (store - 1) % 4 < 2 ? 'primary' : 'standby';
        return { store: { database: pair.url(first) }, place: pair };
      },
      round: failOver,
    }),
};

async function failOver({ store, place: pair, random, number }: Round<SynchronousPair>): Promise<string> {
  const how = number % 2 === 0 ? 'killed' : 'stopped';
  await store.load.stores(STORED_BEFORE_AND_AFTER);
  await (how === 'killed' ? pair.primary.kill() : pair.primary.signal('SIGSTOP'));
  await wait(PROMOTION_DELAY_MS[how] + random(PROMOTION_DELAY_RANDOM_MS));
  await store.recovered(await pair.promote());
  await store.load.stores(STORED_BEFORE_AND_AFTER);
  return `primary ${how}`;
}
