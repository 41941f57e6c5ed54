import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { until } from '../test/harness/until.ts';
import { type FailingCall, FailingCalls } from './failing-calls-library.ts';
import { newSqliteFile, type Scenario } from './scenario.ts';
import { type Round, runOnStores } from './served-store.ts';

const NTH_MAX = 200;
/** Two years: longer than any timeout. The clock steps once in so many failures. */
const CLOCK_MAX_SECONDS = 63_000_000;
const CLOCK_EVERY = 8;
/** How long permanent failures last. */
const FAILING_MS = 60;

/**
 * Makes the n-th write or flush of the store's files fail, once or permanently, or hang, for each n
 * from 1 to 200. Sometimes the clock of the service steps. The order is random, so that a short run has cases of each kind.
 */
export const failingCalls: Scenario = {
  name: 'failing-calls',
  summary: 'the n-th write or flush fails or hangs, n from 1 to 200, and the clock steps, on SQLite',
  needs: ['linux', 'gcc'],
  secondsMin: 3,
  finds: ['respond-before-commit'],
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

/** Each n with each kind of failure, once and permanently, in random order. */
function allCases(random: (below: number) => number): FailingCall[] {
  const cases: FailingCall[] = [];
  for (let nth = 1; nth <= NTH_MAX; nth++) {
    for (const permanent of [false, true]) {
      const error = random(2) === 0 ? 'EIO' : 'ENOSPC';
      cases.push({ call: 'flush', nth, shape: 'fail', error: 'EIO', permanent });
      for (const shape of ['fail', 'torn', 'short'] as const)
        cases.push({ call: 'write', nth, shape, error, permanent });
    }
    // A disk that hangs.
    cases.push({ call: 'flush', nth, shape: 'stall', error: 'EIO', permanent: true });
  }
  for (let last = cases.length - 1; last > 0; last--) {
    const other = random(last + 1);
    [cases[last], cases[other]] = [cases[other]!, cases[last]!];
  }
  return cases;
}

async function fail(
  { store, place: calls, random }: Round<FailingCalls>,
  failing: FailingCall,
): Promise<string> {
  const { call, nth, shape, error, permanent } = failing;
  const begin = store.log.length;
  if (random(CLOCK_EVERY) === 0) calls.setClock(random(2 * CLOCK_MAX_SECONDS) - CLOCK_MAX_SECONDS);
  calls.begin(failing);
  await until('the call fails', () => calls.failed > 0);
  if (permanent) await wait(FAILING_MS);
  calls.end();
  await store.recovered();
  const often = permanent ? 'permanent' : 'once';
  if (store.log.slice(begin).some(({ response }) => response === undefined))
    store.faults.push(`${call} ${nth} ${shape} ${error} ${often}: requests had no response`);
  return `${call === 'flush' ? 'flushes' : 'writes'}: ${shape}, ${often}`;
}
