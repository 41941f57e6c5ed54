import { setTimeout as sleep } from 'node:timers/promises';
import { StoreError, StoreRejected, StoreUnavailable } from '../../core/commit/store-errors.ts';
import { type Problem, problemText } from '../../core/problem.ts';
import { errorLog, failureLog, type ServiceLog } from '../log/rate-limited-log.ts';

/** If the store does not respond within this time, `/readyz` reports the service as not ready. */
export const READINESS_TIMEOUT_MS = 2_000;
/** `/readyz` needs no credential, so the service asks the store at most once in this time. */
export const STATE_AGE_MAX_MS = 1_000;

/** The warnings of the store, or why the store cannot be used. */
export type StoreState =
  | { kind: 'usable'; warnings: readonly Problem[] }
  | { kind: 'unusable'; problem: Problem };

/**
 * Describes a failure for operators, who have its details in the log.
 *
 * @param cause undefined: nothing failed, but there is no result in time
 */
export function problemOf(cause: unknown): Problem {
  if (cause === undefined) return { fault: 'no response in time' };
  return cause instanceof StoreError ? cause : { fault: 'an unexpected error' };
}

/**
 * Reads the state of the store for many callers. At most one reading runs at a time. All callers
 * get its result until it is {@link STATE_AGE_MAX_MS} old. While a reading hangs, callers get a
 * failure.
 *
 * @param readWarnings rejects when the store cannot be used
 * @returns a function that waits for a limited time, and never throws; each change is logged
 */
export function storeStateReader(
  readWarnings: () => Promise<readonly Problem[]>,
  log: ServiceLog,
): () => Promise<StoreState> {
  const availability = failureLog(
    details => log.warn(details, 'the store cannot be used; /readyz reports 503'),
    () => log.info('the store can be used again'),
  );
  const onInternalError = errorLog(
    log,
    'the check of the store failed: unexpected internal error; /readyz reports 503',
  );
  let logged: readonly string[] = [];
  const logChange = (problems: readonly Problem[]): void => {
    const warnings = problems.map(problem => problemText(problem));
    if (warnings.length === logged.length && warnings.every(warning => logged.includes(warning))) return;
    for (const warning of warnings) log.warn({ warnings }, `the store warns: ${warning}`);
    if (warnings.length === 0) log.info('the store has nothing to warn of any more');
    logged = warnings;
  };
  const stateOf = async (reading: Promise<readonly Problem[]>): Promise<StoreState> => {
    try {
      const warnings = await Promise.race([reading, timeout()]);
      availability.recovered();
      logChange(warnings);
      return { kind: 'usable', warnings };
    } catch (cause) {
      if (cause instanceof StoreUnavailable || cause instanceof StoreRejected) availability.failed(cause);
      else onInternalError(cause);
      return { kind: 'unusable', problem: problemOf(cause) };
    }
  };
  /** The last reading. `validUntil` is in ms on the monotonic clock; Infinity while it runs. */
  let last: { state: Promise<StoreState>; validUntil: number } | undefined;
  return () => {
    if (last === undefined || performance.now() >= last.validUntil) {
      const beganAt = performance.now();
      const reading = readWarnings();
      const begun = { state: stateOf(reading), validUntil: Number.POSITIVE_INFINITY };
      const end = (): void => {
        begun.validUntil = beganAt + STATE_AGE_MAX_MS;
      };
      reading.then(end, end);
      last = begun;
    }
    return last.state;
  };
}

/** Rejects when the store has had its time to respond. It does not keep the process running. */
async function timeout(): Promise<never> {
  await sleep(READINESS_TIMEOUT_MS, undefined, { ref: false });
  throw new StoreUnavailable(`no response within ${READINESS_TIMEOUT_MS / 1000} s`);
}
