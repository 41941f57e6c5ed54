import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { until } from '../test/harness/until.ts';
import { type FailingCall, FailingCalls } from './failing-calls-library.ts';
import { newSqliteFile, type Scenario } from './scenario.ts';
import { type Round, runOnStores } from './served-store.ts';

const NTH_MAX = 200;
/** How long calls that fail for good go on to fail. */
const FAILING_MS = 60;

/**
 * Lets the n-th write and the n-th flush of the store's files fail, once and for good, for each n from 1 to 200: nothing
 * done, half of it written, no room. The order is drawn at random, so that a shorter run has its share of everything.
 */
export const failingCalls: Scenario = {
  name: 'failing-calls',
  summary: 'the n-th write or flush fails, once or for good, n from 1 to 200, on SQLite',
  needs: ['linux', 'gcc'],
  secondsMin: 3,
  finds: ['answer-before-commit'],
  run(order) {
    const cases = allCases(seededRandom(order.seed));
    return runOnStores(order, {
      roundsPerStore: 10,
      roundsMax: cases.length,
      async setUp(opened) {
        const path = newSqliteFile(opened);
        const calls = opened.use(new FailingCalls());
        return {
          store: { database: `sqlite:${path}`, env: calls.environment(dirname(path)) },
          place: calls,
        };
      },
      round: round => fail(round, cases[round.number]!),
    });
  },
};

/** Each n with each kind of failure, once and for good, in no order. */
function allCases(random: (below: number) => number): FailingCall[] {
  const cases: FailingCall[] = [];
  for (let nth = 1; nth <= NTH_MAX; nth++) {
    for (const forGood of [false, true]) {
      const error = random(2) === 0 ? 'EIO' : 'ENOSPC';
      cases.push({ call: 'flush', nth, shape: 'fail', error: 'EIO', forGood });
      for (const shape of ['fail', 'torn', 'short'] as const)
        cases.push({ call: 'write', nth, shape, error, forGood });
    }
  }
  for (let last = cases.length - 1; last > 0; last--) {
    const other = random(last + 1);
    [cases[last], cases[other]] = [cases[other]!, cases[last]!];
  }
  return cases;
}

async function fail({ store, place: calls }: Round<FailingCalls>, failing: FailingCall): Promise<string> {
  const { call, nth, shape, error, forGood } = failing;
  const begin = store.log.length;
  calls.begin(failing);
  await until('the call fails', () => calls.failed > 0);
  if (forGood) await wait(FAILING_MS);
  calls.end();
  await store.recovered();
  const often = forGood ? 'for good' : 'once';
  if (store.statusesFrom(begin).includes(undefined))
    store.faults.push(`${call} ${nth} ${shape} ${error} ${often}: requests were not answered`);
  return `${call === 'flush' ? 'flushes' : 'writes'}: ${shape}, ${often}`;
}
