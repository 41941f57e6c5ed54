import type { CommitStatistics } from '../../core/commit/plant-commits.ts';
import type { ErrorName } from '../../core/contract/errors.ts';
import type { OperatorWarning } from '../../core/extension-points.ts';
import type { EngineStatistics } from '../../engines/storage-engine.ts';
import type { CommandRun } from '../../engines/tables/operator-tables.ts';
import type { StoreState } from './store-state.ts';

/** How often requests are rejected and confirmed, and the most frequent error of a client. */
export interface ResponseRates {
  rejectedPerSecond: number;
  confirmedPerSecond: number;
  mostFrequentError: ErrorName;
}

/** Whether commits succeed. */
export interface CommitHealth {
  /** How long most plants have not been confirmed; 0 if most were in the last second. */
  failingMs: number;
  /** The last failure of a commit or a test commit, if it was a short time ago. */
  recentFailure: { cause: unknown } | undefined;
}

/** The current state of the service, for the operations listener. */
export interface ServiceState extends CommitStatistics {
  store: StoreState;
  engine: EngineStatistics;
  commits: CommitHealth;
  /** Warnings of extras. */
  warnings: readonly OperatorWarning[];
  isDamaged: boolean;
  /** About when the store got its first plant, in ms since 1970; undefined: it had none lately. */
  firstPlantAt: number | undefined;
  lastRuns: readonly CommandRun[];
  rates: ResponseRates;
  /** The mean duration of the last commits; 0 without a commit. */
  commitSeconds: number;
  openConnections: number;
  isShuttingDown: boolean;
  /**
   * `isCurrent`: the token table was read in the last 4 s. If not, no token is accepted. `failure`
   * is why the last read failed; undefined: it did not fail, or has not ended.
   */
  tokens: { size: number; isCurrent: boolean; failure: unknown };
  /**
   * The time of this start, if the last service or `copy` was killed; ms since 1970. Null: it was
   * not killed, or this is unknown.
   */
  restartedAt: number | null;
}
