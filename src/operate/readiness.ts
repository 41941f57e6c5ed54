import type { CommitStatistics } from '../core/commit/plant-commits.ts';
import { ERRORS, type ErrorName } from '../core/contract/errors.ts';
import type { OperatorWarning } from '../core/extension-points.ts';
import type { CommandRun } from '../engines/command-runs.ts';
import type { Disk, EngineStatistics } from '../engines/storage-engine.ts';
import { DAMAGE, DAMAGE_WARNING } from './known-damage.ts';
import { type StoreState, shownFailure } from './store-warnings.ts';

/** When commits fail for longer than this, the service is not ready. */
const COMMITS_FAILING_MAX_MS = 5_000;
/** Below this, the disk is nearly full, as in the alert PlantStoreDiskFilling. */
const DISK_FREE_BYTES_MIN = 1e9;
/** Below this, a lack of space explains why commits fail: a test commit needs 8 MiB. */
const DISK_FULL_BYTES = 64e6;

/**
 * Above this rate of rejected requests, a client is at fault, as in the alert PlantStoreRejects.
 */
const REJECTED_PER_SECOND_MAX = 10;
/** Above this rate, a client is at fault if more requests are rejected than plants confirmed. */
const MOSTLY_REJECTED_PER_SECOND = 1;
/** If the mean commit is slower, the disk or the database server is at fault. */
const COMMIT_SECONDS_MAX = 0.25;

/** How often requests are rejected and confirmed, and the most frequent error of a client. */
export interface ResponseRates {
  rejectedPerSecond: number;
  confirmedPerSecond: number;
  mostFrequentError: ErrorName;
}

/** The current state of the service, for the operations listener. */
export interface ServiceState extends CommitStatistics {
  store: StoreState;
  engine: EngineStatistics;
  commits: {
    /** How long most plants have not been confirmed; 0 if the last second was not bad. */
    failingMs(): number;
    /** Why a commit failed a short time ago; undefined: no commit failed. */
    failure(): unknown;
  };
  /** Warnings of extras. */
  warnings: readonly OperatorWarning[];
  isDamaged: boolean;
  lastRuns: readonly CommandRun[];
  rates: ResponseRates;
  /** The mean duration of the last commits; 0 without a commit. */
  commitSeconds: number;
  openConnections: number;
  isShuttingDown: boolean;
  /** `isCurrent`: the token table was read in the last 4 s. If not, no token is accepted. */
  tokens: { size: number; isCurrent: boolean; failure: unknown };
  /** Ms since 1970, if the last service or `copy` was killed; null: it was not, or this is unknown. */
  restartedAt: number | null;
}

interface ReadinessCheck {
  name: string;
  ok: boolean;
  detail: string;
  /** Empty if the check passes. */
  advice: string;
}

const DISK_ADVICE =
  'free space on this disk or enlarge its file system; never delete -wal, -shm or -serve-lock, which belong to the store';

/** @returns the body of `/readyz`: one verdict, and every check */
export function readinessOf(state: ServiceState) {
  const checks = checksOf(state);
  const failing = checks.filter(({ ok }) => !ok);
  const isDecisive = ({ name }: ReadinessCheck): boolean =>
    name === 'commits' ? state.commits.failingMs() > COMMITS_FAILING_MAX_MS : DECISIVE.includes(name);
  const decisive = failing.find(isDecisive);
  return {
    status: decisive === undefined ? 'ready' : 'not ready',
    ...(decisive !== undefined && { reason: textOf(decisive) }),
    ...(decisive === undefined && failing.length > 0 && { warnings: failing.map(textOf) }),
    verdict: verdictOf(decisive, failing[0]),
    restartedAt: state.restartedAt,
    checks,
  };
}

/**
 * If one of these checks fails, no plant is stored. `commits` also decides after 5 s of failure.
 */
const DECISIVE = ['shutdown', 'store', 'tokens'];

/** The sentence that `/readyz`, the command `health` and the console show first. */
function verdictOf(decisive: ReadinessCheck | undefined, first: ReadinessCheck | undefined) {
  const worst = decisive ?? first;
  if (worst === undefined)
    return { state: 'well', sentence: 'plants can be stored, and all checks pass', advice: '' };
  const { name, detail: sentence, advice } = worst;
  const state = decisive !== undefined ? 'not ready' : name === 'damage' ? 'damaged' : 'warning';
  return { state, sentence, advice };
}

/** A warning of the store already says what to do. */
function textOf({ name, detail, advice }: ReadinessCheck): string {
  return name === 'warnings' ? detail : `${detail}; ${advice}`;
}

/** Every check, the gravest first. */
function checksOf(state: ServiceState): ReadinessCheck[] {
  const { plantsInFlight, plantsInFlightMax } = state;
  const isOnPostgres = state.engine.kind === 'postgres';
  const disk = state.engine.kind === 'sqlite' ? state.engine.disk : undefined;
  const isDiskFull = disk !== undefined && disk.freeBytes < DISK_FULL_BYTES;
  const full = isDiskFull ? `the disk of the store is full (${freeText(disk)}), so ` : '';
  const part = isOnPostgres
    ? 'whether PostgreSQL hangs, has space on its disk, can be reached, and lets this service use its tables'
    : 'the disk and the files of the store, and whether another program locks them';
  const checks: ReadinessCheck[] = [];
  const add = (name: string, fault: string | false, detail: string, advice: string): void => {
    checks.push({ name, ok: fault === false, detail: fault || detail, advice: fault ? advice : '' });
  };
  /**
   * @param failure the cause and, after a semicolon, advice if there is any; undefined: no failure
   */
  const addStore = (name: string, failure: string | undefined, fault: string, detail: string): void => {
    if (failure === undefined) {
      add(name, false, detail, '');
      return;
    }
    const [, cause = failure, advice = `check ${part}`] = /^(.*?); (.*)$/s.exec(failure) ?? [];
    const storeAdvice = isDiskFull ? DISK_ADVICE : `${advice}; the log of the service has the details`;
    add(name, `${full}${fault} and plants get 503 responses: ${cause}`, detail, storeAdvice);
  };
  add(
    'shutdown',
    state.isShuttingDown && 'the service is shutting down',
    'the service accepts requests',
    'start it again if it does not start by itself',
  );
  const { failure, warnings = [] } = state.store;
  const failed = state.commits.failure();
  const commitsFail = failed !== undefined || state.commits.failingMs() > 0;
  // The cause of a failed commit explains more. Other checks may only know that they wait for a
  // lock.
  const known = failed === undefined ? undefined : shownFailure(failed);
  addStore(
    'store',
    failure === undefined ? undefined : (known ?? failure),
    'the store cannot be used,',
    'the store can be used',
  );
  addStore(
    'tokens',
    state.tokens.isCurrent ? undefined : (known ?? shownFailure(state.tokens.failure)),
    'the token table cannot be read, so no token is accepted',
    `${state.tokens.size === 1 ? '1 token is' : `${state.tokens.size} tokens are`} cached and current`,
  );
  addStore('commits', commitsFail ? shownFailure(failed) : undefined, 'commits fail,', 'commits succeed');
  add('damage', state.isDamaged && DAMAGE.fault, 'no damage of the store is known', DAMAGE.advice);
  // A full disk is already the reason why commits fail.
  const isNearlyFull =
    disk !== undefined && disk.freeBytes < DISK_FREE_BYTES_MIN && !(isDiskFull && commitsFail);
  const diskFault = isNearlyFull && `the disk of the store is nearly full (${freeText(disk)})`;
  add('disk', diskFault, 'the disk of the store has space, or is not on this machine', DISK_ADVICE);
  add(
    'queue',
    plantsInFlight >= plantsInFlightMax &&
      'the limit of plants in flight is reached, so further plants get 503 responses',
    `${plantsInFlight} of at most ${plantsInFlightMax} plants wait for a commit or are in one`,
    'find the senders of many plants; if commits are slow, check the disk or the database server',
  );
  add(
    'latency',
    state.commitSeconds > COMMIT_SECONDS_MAX &&
      `commits are slow, and plants wait for them (${state.commitSeconds.toFixed(1)} s on average)`,
    'commits are fast',
    isOnPostgres
      ? 'check the database server, its disk, locks on its tables, and the network to it'
      : 'check the disk, and programs that use it much or lock the store',
  );
  add(
    'requests',
    rejectionFault(state.rates),
    'few requests are rejected',
    'find the senders on the screen Rejected of the console, or with --log-requests on',
  );
  for (const { name, detail, advice } of state.warnings) add(name, detail, '', advice);
  for (const warning of warnings.filter(each => each !== DAMAGE_WARNING))
    add('warnings', warning, '', 'fix this soon, since plants may be lost later');
  return checks;
}

function freeText({ freeBytes }: Disk): string {
  return `${Math.floor(freeBytes / 1e6)} MB free`;
}

function rejectionFault({
  rejectedPerSecond,
  confirmedPerSecond,
  mostFrequentError,
}: ResponseRates): string | false {
  const isMost = rejectedPerSecond > MOSTLY_REJECTED_PER_SECOND && rejectedPerSecond > confirmedPerSecond;
  if (rejectedPerSecond <= REJECTED_PER_SECOND_MAX && !isMost) return false;
  const { number, message } = ERRORS[mostFrequentError];
  const [reason] = message.split(';');
  const stored = confirmedPerSecond < rejectedPerSecond / 4 ? ', and few plants are stored' : '';
  return `about ${Number(rejectedPerSecond.toPrecision(1))} requests per second are rejected, most often with the error ${number} (${reason})${stored}`;
}
