import { setTimeout as delay } from 'node:timers/promises';
import { StoreInternalError, StoreRejected, StoreUnavailable } from '../core/commit/store-errors.ts';
import { errorLog, failureLog, type ServiceLog } from './rate-limited-log.ts';

/** If the store does not respond within this time, `/readyz` reports the service as not ready. */
export const READINESS_TIMEOUT_MS = 2_000;
/** `/readyz` needs no credential, so the service asks the store at most once in this time. */
export const STATE_AGE_MAX_MS = 1_000;

/** The warnings of the store, each one sentence, or why the store cannot be used. */
export type StoreState =
  | { warnings: readonly string[]; failure?: undefined }
  | { warnings?: undefined; failure: string };

/** @returns the cause of a failure for operators, who have its details in the log */
export function shownFailure(cause: unknown): string {
  if (cause === undefined) return 'no response in time';
  const isExplained = [StoreUnavailable, StoreRejected, StoreInternalError].some(
    each => cause instanceof each,
  );
  if (isExplained) return (cause as Error).message;
  return 'an unexpected error';
}

/**
 * Reads the state of the store for many callers. At most one reading runs at a time. All callers
 * get its result until it is {@link STATE_AGE_MAX_MS} old. While a reading hangs, callers get a
 * failure.
 *
 * @param readWarnings resolves with one sentence per warning; rejects when the store cannot be used
 * @returns a function that waits for a limited time, and never throws; each change is logged
 */
export function storeStateOf(
  readWarnings: () => Promise<readonly string[]>,
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
  const logChange = (warnings: readonly string[]): void => {
    if (warnings.length === logged.length && warnings.every(warning => logged.includes(warning))) return;
    for (const warning of warnings) log.warn({ warnings }, `the store warns: ${warning}`);
    if (warnings.length === 0) log.info('the store has nothing to warn of any more');
    logged = warnings;
  };
  const stateOf = async (reading: Promise<readonly string[]>): Promise<StoreState> => {
    try {
      const timeout = delay(READINESS_TIMEOUT_MS, undefined, { ref: false });
      const warnings = await Promise.race([reading, timeout]);
      if (warnings === undefined)
        throw new StoreUnavailable(`no response within ${READINESS_TIMEOUT_MS / 1000} s`);
      availability.recovered();
      logChange(warnings);
      return { warnings };
    } catch (cause) {
      if (cause instanceof StoreUnavailable || cause instanceof StoreRejected) availability.failed(cause);
      else onInternalError(cause);
      return { failure: shownFailure(cause) };
    }
  };
  const begin = () => {
    const beganAt = performance.now();
    const reading = readWarnings();
    const begun = { state: stateOf(reading), validUntil: Number.POSITIVE_INFINITY };
    const ended = () => (begun.validUntil = beganAt + STATE_AGE_MAX_MS);
    reading.then(ended, ended);
    return begun;
  };
  let last: ReturnType<typeof begin> | undefined;
  return () => {
    if (last === undefined || performance.now() >= last.validUntil) last = begin();
    return last.state;
  };
}
