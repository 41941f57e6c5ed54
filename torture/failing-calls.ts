import { setTimeout as wait } from 'node:timers/promises';
import { LOG_REPEATS_AT_ONCE } from '../src/contract/limits.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { until } from '../test/harness/until.ts';
import { type FailingCall, FailingCalls } from './failing-calls-library.ts';
import { spread } from './figures.ts';
import type { Ordeal, OrdealOrder, OrdealResult } from './ordeal.ts';
import { lateRecoveries } from './recovery.ts';
import { ServedStore } from './served-store.ts';

const NTH_MAX = 200;
/**
 * On one store; then it is compared with what clients were told. Each case must be in the log, which gives so many failures
 * a line at once, and a case may be two.
 */
const CASES_PER_STORE = LOG_REPEATS_AT_ONCE / 2;
/** How long calls that fail for good go on to fail. */
const FAILING_MS = 60;
const LINE_WAIT_MS = 500;

/**
 * Lets the n-th write and the n-th flush of the store's files fail, once and for good, for each n from 1 to 200: nothing
 * done, half of it written, no room. The order is drawn at random, so that a shorter run has its share of everything.
 */
export const failingCalls: Ordeal = {
  name: 'failing-calls',
  summary: 'the n-th write or flush fails, once or for good, n from 1 to 200, on SQLite',
  finds: ['answer-before-commit'],
  obstacle: FailingCalls.obstacle,
  run,
};

async function run({ seed, weakness, signal, tell, budgetMs }: OrdealOrder): Promise<OrdealResult> {
  const untilMs = performance.now() + budgetMs;
  const random = seededRandom(seed);
  const cases = allCases(random);
  const faults: string[] = [];
  const recoveryMs: number[] = [];
  const counts = { cases: 0, 'failed calls': 0, requests: 0, kept: 0, unknown: 0 };
  const isOver = (): boolean =>
    counts.cases === cases.length || performance.now() >= untilMs || signal.aborted;
  using calls = new FailingCalls();
  for (let stores = 1; !isOver(); stores++) {
    await using store = await ServedStore.make({ weakness, calls });
    await store.startUnderLoad(seed + stores);
    const firstCase = counts.cases;
    let saidBefore = 0;
    while (counts.cases < firstCase + CASES_PER_STORE && !isOver()) {
      const failing = cases[counts.cases]!;
      const saidAtBegin = store.timesSaidFailed;
      const found = await fail(store, calls, failing, recoveryMs);
      // Of this case or the last: a token that is not known is answered 503 for a second behind the fault.
      // Its line may still be on its way to us, behind the plant that was kept again.
      if (found.isRefused && store.timesSaidFailed === saidBefore) await wait(LINE_WAIT_MS);
      if (found.isRefused && store.timesSaidFailed === saidBefore)
        found.faults.push('plants were answered 503, and the log does not say so');
      saidBefore = saidAtBegin;
      faults.push(...found.faults.map(fault => `${shown(failing)}: ${fault}`));
      counts['failed calls'] += calls.failed;
      counts.cases++;
    }
    await store.stopLoad();
    faults.push(...(await store.faults(`cases ${firstCase + 1} to ${counts.cases}`)));
    counts.requests += store.log.length;
    counts.kept += store.kept.length;
    counts.unknown += store.unknown.length;
    tell(`${counts.cases} of ${cases.length} cases, ${counts.requests} requests, ${faults.length} faults`);
  }
  const done = cases.slice(0, counts.cases);
  return {
    faults,
    figures: {
      ...counts,
      'of all cases': cases.length,
      'different n of writes': new Set(done.filter(({ call }) => call === 'write').map(({ nth }) => nth))
        .size,
      'different n of flushes': new Set(done.filter(({ call }) => call === 'flush').map(({ nth }) => nth))
        .size,
      'end of the fault to next 200': spread(recoveryMs, 'ms'),
    },
  };
}

/** Each n with each kind of failure, once and for good, in no order. */
function allCases(random: (below: number) => number): FailingCall[] {
  const cases: FailingCall[] = [];
  for (let nth = 1; nth <= NTH_MAX; nth++) {
    for (const forGood of [false, true]) {
      const error = random(2) === 0 ? 'EIO' : 'ENOSPC';
      cases.push({ call: 'flush', nth, shape: 'fail', error: 'EIO', forGood });
      cases.push({ call: 'write', nth, shape: 'fail', error, forGood });
      cases.push({ call: 'write', nth, shape: 'torn', error, forGood });
      cases.push({ call: 'write', nth, shape: 'short', error, forGood });
    }
  }
  for (let last = cases.length - 1; last > 0; last--) {
    const other = random(last + 1);
    [cases[last], cases[other]] = [cases[other]!, cases[last]!];
  }
  return cases;
}

/** @returns which promise the service did not keep meanwhile, and whether it refused any plant; what it stored is compared later */
async function fail(
  store: ServedStore,
  calls: FailingCalls,
  failing: FailingCall,
  recoveryMs: number[],
): Promise<{ faults: string[]; isRefused: boolean }> {
  const begin = store.log.length;
  calls.begin(failing);
  await until('the call fails', () => calls.failed > 0);
  if (failing.forGood) await wait(FAILING_MS);
  calls.end();
  const backMs = await store.keeps(1);
  recoveryMs.push(backMs);
  const faults = lateRecoveries(backMs);
  const answers = store.log.slice(begin).map(({ answer }) => answer);
  if (answers.includes(undefined)) faults.push('requests were not answered');
  return { faults, isRefused: answers.some(answer => answer?.status === 503) };
}

function shown({ call, nth, shape, error, forGood }: FailingCall): string {
  return `${call} ${nth} ${shape} ${error} ${forGood ? 'for good' : 'once'}`;
}
