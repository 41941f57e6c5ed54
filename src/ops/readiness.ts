import type { CommitStatistics, EngineStatistics } from '../store/plant-store.ts';

/** When commits fail for longer than this, the service is not ready. */
const COMMITS_FAILING_MAX_MS = 5_000;

/** The current state of the service, for the operations listener. */
export interface ServiceState extends CommitStatistics {
  /** One sentence per warning; undefined while the store cannot be used. */
  storeWarnings: readonly string[] | undefined;
  engine: EngineStatistics;
  /** For how long most plants were not confirmed; 0 if the last second was not bad. */
  commitsFailingMs: number;
  /** Plants that were sent again, and whose latest revision is damaged. */
  damagedPlants: number;
  openConnections: number;
  isShuttingDown: boolean;
  /** Undefined without a collector of traces. */
  spansDropped: number | undefined;
  tokensKnown: number;
  /** Whether the token table was read in the last 4 s. If not, no token is accepted. */
  areTokensCurrent: boolean;
}

/** @returns the body of `/readyz`: why plants cannot be stored, or what may soon prevent it */
export function readinessOf(state: ServiceState) {
  const { storeWarnings: warnings, plantsInFlight, plantsInFlightMax } = state;
  const { isCheckpointFailing } = state.engine;
  const checks: { name: string; ok: boolean; detail: string }[] = [];
  const check = (name: string, ok: boolean, detail: string, fault: string): void => {
    checks.push({ name, ok, detail: ok ? detail : fault });
  };
  check('shutdown', !state.isShuttingDown, 'the service accepts requests', 'shutting down');
  const unreachable = 'the store cannot be used now; the log has the cause';
  check('store', warnings !== undefined, 'the store responds', unreachable);
  const failing = 'most plants get 503 responses, since commits fail; the log has the cause';
  check('commits', state.commitsFailingMs === 0, 'commits succeed', failing);
  check(
    'queue',
    plantsInFlight < plantsInFlightMax,
    `${plantsInFlight} of at most ${plantsInFlightMax} plants wait for a commit or are in one`,
    'the limit of plants in flight is reached, so further plants get 503 responses',
  );
  check(
    'tokens',
    state.areTokensCurrent,
    `${state.tokensKnown} tokens are cached and current`,
    'the token table cannot be read, so no token is accepted and plants get 503 responses; the log has the cause',
  );
  check(
    'checksums',
    state.damagedPlants === 0,
    'no damaged plant was found by a create',
    `damaged plants found by creates: ${state.damagedPlants}; the log has their ids`,
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
    check('warnings', warnings.length === 0, 'the store has no warnings', warnings.join('; '));
  const areCommitsDecisive = state.commitsFailingMs > COMMITS_FAILING_MAX_MS;
  const decisive = ['shutdown', 'store', 'tokens', ...(areCommitsDecisive ? ['commits'] : [])];
  const reason = checks.find(({ name, ok }) => !ok && decisive.includes(name))?.detail;
  if (reason !== undefined) return { status: 'not ready', reason, checks };
  return { status: 'ready', ...(warnings?.length && { warnings }), checks };
}
