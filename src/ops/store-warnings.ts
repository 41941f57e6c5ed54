import { setTimeout as delay } from 'node:timers/promises';
import { StoreRejected, StoreUnavailable } from '../store/plant-store.ts';
import { failureLog, type ServiceLog } from './rate-limited-log.ts';

/** If the store does not respond within this time, `/readyz` reports the service as not ready. */
export const READINESS_TIMEOUT_MS = 2_000;

/** One sentence per warning, or why the store cannot be used. */
export type StoreState =
  | { warnings: readonly string[]; failure?: undefined }
  | { warnings?: undefined; failure: string };

/** @returns the cause of a failure for operators, who have its details in the log */
export function shownFailure(cause: unknown): string {
  if (cause === undefined) return 'no response in time';
  if (cause instanceof StoreUnavailable || cause instanceof StoreRejected) return cause.message;
  return 'an unexpected error';
}

/**
 * @param check resolves with one sentence per warning; rejects when the store cannot be used
 * @returns a function that checks once, for a limited time, and never throws; it logs each change
 */
export function storeWarningsOf(
  check: () => Promise<readonly string[]>,
  log: ServiceLog,
): () => Promise<StoreState> {
  const availability = failureLog(
    details => log.warn(details, 'the store cannot be used; /readyz reports 503'),
    () => log.info('the store can be used again'),
  );
  let logged: readonly string[] = [];
  const logChange = (warnings: readonly string[]): void => {
    if (warnings.length === logged.length && warnings.every(warning => logged.includes(warning))) return;
    for (const warning of warnings) log.warn({ warnings }, `the store warns: ${warning}`);
    if (warnings.length === 0) log.info('the store has nothing to warn of any more');
    logged = warnings;
  };
  return async () => {
    try {
      const timeout = delay(READINESS_TIMEOUT_MS, undefined, { ref: false });
      const warnings = await Promise.race([check(), timeout]);
      if (warnings === undefined)
        throw new StoreUnavailable(`no response within ${READINESS_TIMEOUT_MS / 1000} s`);
      availability.recovered();
      logChange(warnings);
      return { warnings };
    } catch (cause) {
      availability.failed(cause);
      return { failure: shownFailure(cause) };
    }
  };
}
