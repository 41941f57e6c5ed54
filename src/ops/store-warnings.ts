import { setTimeout as wait } from 'node:timers/promises';
import { READINESS_TIMEOUT_MS } from './limits.ts';
import { ChangeLog, type ServiceLog } from './rate-limited-log.ts';

/**
 * Asks the store whether it can be used; the cause and the warnings go to the log, once for each change.
 *
 * @param check settles with what the store warns of, a sentence each, and rejects when it cannot be used
 * @param rawCause finds what the log says of an error
 * @returns asks once and waits a bounded time for the warnings; undefined when the store cannot be used; never throws
 */
export function storeWarningsOf(
  check: () => Promise<readonly string[]>,
  rawCause: (error: unknown) => unknown,
  log: ServiceLog,
): () => Promise<readonly string[] | undefined> {
  const reach = new ChangeLog(
    cause => log.warn({ err: rawCause(cause) }, 'the store cannot be used; /readyz says so'),
    () => log.info('the store can be used again'),
  );
  let known: readonly string[] = [];
  const logChange = (warnings: readonly string[]): void => {
    if (warnings.length === known.length && warnings.every(warning => known.includes(warning))) return;
    for (const warning of warnings) log.warn({ warnings }, `the store warns: ${warning}`);
    if (warnings.length === 0) log.info('the store has nothing to warn of any more');
    known = warnings;
  };
  return async () => {
    try {
      const late = wait(READINESS_TIMEOUT_MS, undefined, { ref: false });
      const warnings = await Promise.race([check(), late]);
      if (warnings === undefined) throw new Error('no answer in time');
      reach.recovered();
      logChange(warnings);
      return warnings;
    } catch (cause) {
      reach.failed(cause);
      return undefined;
    }
  };
}
