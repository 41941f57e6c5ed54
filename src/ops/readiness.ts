import type { CommitStatistics, EngineStatistics } from '../store/plant-store.ts';

/** The service as it is now, for the operations listener. */
export interface ServiceState extends CommitStatistics {
  /** What an operator should know of the store, a sentence each; undefined while the store cannot be used. */
  storeWarnings: readonly string[] | undefined;
  engine: EngineStatistics;
  openConnections: number;
  isShuttingDown: boolean;
  tokensKnown: number;
  /** Whether the last lookup of changes to tokens succeeded. */
  areTokensCurrent: boolean;
}

/** Those that decide whether the service is ready; the others will need somebody's hand. */
const DECISIVE = ['shutdown', 'store'];

/**
 * Checks everything that keeps the service from taking plants, or soon may.
 *
 * @returns what `/readyz` says: why plants cannot be taken; or what an operator should know though they can
 */
export function readinessOf(state: ServiceState) {
  const { storeWarnings: warnings, plantsInFlight, plantsInFlightMax } = state;
  const { isCheckpointFailing } = state.engine;
  const checks: { name: string; ok: boolean; detail: string }[] = [];
  const check = (name: string, ok: boolean, detail: string, fault: string): void => {
    checks.push({ name, ok, detail: ok ? detail : fault });
  };
  check('shutdown', !state.isShuttingDown, 'the service takes requests', 'shutting down');
  const unreachable = 'the store cannot be used now; the log has the cause';
  check('store', warnings !== undefined, 'the store answers', unreachable);
  // Not decisive: where nothing is sent to a service that is not ready, nothing would find out that it is over.
  check(
    'commits',
    !state.isCommitFailing,
    'the last commit was confirmed',
    'the last commit was not confirmed; its plants were answered 503, and the next one tries again',
  );
  check(
    'queue',
    plantsInFlight < plantsInFlightMax,
    `${plantsInFlight} of at most ${plantsInFlightMax} plants wait for a commit or are in one`,
    'as many plants are under way as can be committed in good time; further ones are answered 503',
  );
  check(
    'tokens',
    state.areTokensCurrent,
    `${state.tokensKnown} tokens are known, with all changes`,
    'the store does not answer for tokens; those known stay in force, revoked ones among them',
  );
  if (isCheckpointFailing !== undefined) {
    check(
      'checkpoint',
      !isCheckpointFailing,
      'the write-ahead log is copied into the database file',
      'the write-ahead log cannot be copied into the database file, so it grows; the warnings have the cause',
    );
  }
  if (warnings !== undefined)
    check('warnings', warnings.length === 0, 'the store warns of nothing', warnings.join('; '));
  const reason = checks.find(({ name, ok }) => !ok && DECISIVE.includes(name))?.detail;
  if (reason !== undefined) return { status: 'not ready', reason, checks };
  return { status: 'ready', ...(warnings?.length && { warnings }), checks };
}
