import { setTimeout as delay } from 'node:timers/promises';
import { failureLog, type ServiceLog } from './rate-limited-log.ts';

/** If the store does not respond within this time, `/readyz` reports the service as not ready. */
export const READINESS_TIMEOUT_MS = 2_000;

/**
 * Makes a function that checks whether the store can be used. It logs failures and warnings, once
 * per change.
 *
 * @param check resolves with one sentence per warning; rejects when the store cannot be used
 * @returns a function that checks once, for a limited time. It resolves with the warnings, or with
 *   undefined when the store cannot be used. It never throws.
 */
export function storeWarningsOf(
  check: () => Promise<readonly string[]>,
  log: ServiceLog,
): () => Promise<readonly string[] | undefined> {
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
      if (warnings === undefined) throw new Error('the store did not respond in time');
      availability.recovered();
      logChange(warnings);
      return warnings;
    } catch (cause) {
      availability.failed(cause);
      return undefined;
    }
  };
}
