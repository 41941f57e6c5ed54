import { ERRORS } from '../../core/contract/errors.ts';
import type { Problem } from '../../core/problem.ts';
import type { Disk } from '../../engines/storage-engine.ts';
import { backupFault } from './backup-fault.ts';
import { DAMAGE } from './known-damage.ts';
import type { ServiceState } from './service-state.ts';
import { problemOf } from './store-state.ts';

/** Below this, the disk is nearly full, as in the alert PlantStoreDiskFilling. */
const DISK_FREE_MIN_BYTES = 1e9;
/** Below this, a lack of space explains why commits fail: a test commit needs 8 MiB. */
const DISK_FULL_BYTES = 64e6;
/** Above this rate of rejections, a client is at fault, as in the alert PlantStoreRejects. */
const REJECTED_PER_SECOND_MAX = 10;
/** Above this rate, a client is at fault if more requests are rejected than plants confirmed. */
const MOSTLY_REJECTED_PER_SECOND = 1;
/** When commits fail for longer than this, the service is not ready. */
const COMMITS_FAILING_MAX_MS = 5_000;
/** If the mean commit is slower, the disk or the database server is at fault. */
const COMMIT_MAX_SECONDS = 0.25;

const DISK_ADVICE =
  'free space on this disk or enlarge its file system; never delete -wal, -shm or -serve-lock, which belong to the store';

/** The state of the service after a failed check. While it is not ready, no plant is stored. */
export type Gravity = 'not ready' | 'damaged' | 'warning';

/** One check. `detail` is a sentence: what is in order, or the fault. */
export type ReadinessCheck =
  | { kind: 'passed'; name: string; detail: string }
  | { kind: 'failed'; name: string; detail: string; advice: string; gravity: Gravity };

export type FailedCheck = Extract<ReadinessCheck, { kind: 'failed' }>;

function passed(name: string, detail: string): ReadinessCheck {
  return { kind: 'passed', name, detail };
}

function failed(name: string, problem: Problem, gravity: Gravity = 'warning'): ReadinessCheck {
  const advice = problem.advice ?? 'look for its cause in the log of the service';
  return { kind: 'failed', name, detail: problem.fault, advice, gravity };
}

/** Every check, the gravest first. */
export function checksOf(state: ServiceState): ReadinessCheck[] {
  const storeWarnings = state.store.kind === 'usable' ? state.store.warnings : [];
  return [
    state.isShuttingDown
      ? failed(
          'shutdown',
          {
            fault: 'the service is shutting down',
            advice: 'start it again if it does not start by itself',
          },
          'not ready',
        )
      : passed('shutdown', 'the service accepts requests'),
    ...storeChecks(state),
    state.isDamaged
      ? failed('damage', DAMAGE, 'damaged')
      : passed('damage', 'no damage of the store is known'),
    diskCheck(state),
    queueCheck(state),
    latencyCheck(state),
    requestsCheck(state),
    backupCheck(state),
    ...state.warnings.map(warning => failed(warning.name, warning)),
    // Damage has a check of its own.
    ...storeWarnings.filter(warning => warning !== DAMAGE).map(warning => failed('warnings', warning)),
  ];
}

/** Checks that the store, its token table and its commits work. */
function storeChecks(state: ServiceState): ReadinessCheck[] {
  const { store, tokens, commits, engine } = state;
  const fullDisk = fullDiskOf(state);
  const reason = fullDisk === undefined ? '' : `the disk of the store is full (${freeText(fullDisk)}), so `;
  const part =
    engine.kind === 'postgres'
      ? 'whether PostgreSQL hangs, has space on its disk, can be reached, and lets this service use its tables'
      : 'the disk and the files of the store, and whether another program locks them';
  const storeFailed = (
    name: string,
    effect: string,
    cause: Problem,
    gravity: Gravity = 'not ready',
  ): ReadinessCheck => {
    const advice = cause.advice ?? `check ${part}`;
    const problem = {
      fault: `${reason}${effect} and plants get 503 responses: ${cause.fault}`,
      advice: fullDisk === undefined ? `${advice}; the log of the service has the details` : DISK_ADVICE,
    };
    return failed(name, problem, gravity);
  };
  // The cause of a failed commit explains more than that of the other checks, which may only know
  // that they wait for a lock.
  const { recentFailure } = commits;
  const commitProblem = recentFailure && problemOf(recentFailure.cause);
  return [
    store.kind === 'usable'
      ? passed('store', 'the store can be used')
      : storeFailed('store', 'the store cannot be used,', commitProblem ?? store.problem),
    tokens.isCurrent
      ? passed(
          'tokens',
          `${tokens.size === 1 ? '1 token is' : `${tokens.size} tokens are`} cached and current`,
        )
      : storeFailed(
          'tokens',
          'the token table cannot be read, so no token is accepted',
          commitProblem ?? problemOf(tokens.failure),
        ),
    doCommitsFail(state)
      ? storeFailed(
          'commits',
          'commits fail,',
          commitProblem ?? problemOf(undefined),
          commits.failingMs > COMMITS_FAILING_MAX_MS ? 'not ready' : 'warning',
        )
      : passed('commits', 'commits succeed'),
  ];
}

function doCommitsFail({ commits: { failingMs, recentFailure } }: ServiceState): boolean {
  return recentFailure !== undefined || failingMs > 0;
}

function diskCheck(state: ServiceState): ReadinessCheck {
  const disk = diskOf(state);
  // A full disk is already the reason why commits fail.
  const isReported = fullDiskOf(state) !== undefined && doCommitsFail(state);
  if (disk === undefined) return passed('disk', 'the disk of the store is not on this machine, or unknown');
  if (spaceOf(disk) === 'enough' || isReported)
    return passed('disk', `the disk of the store has ${freeText(disk)}`);
  return failed('disk', {
    fault: `the disk of the store is nearly full (${freeText(disk)})`,
    advice: DISK_ADVICE,
  });
}

/** @returns undefined if the store is on PostgreSQL, or its disk is unknown */
function diskOf({ engine }: ServiceState): Disk | undefined {
  return engine.kind === 'sqlite' ? engine.disk : undefined;
}

/** @returns undefined if the disk has space, or is unknown */
function fullDiskOf(state: ServiceState): Disk | undefined {
  const disk = diskOf(state);
  return disk !== undefined && spaceOf(disk) === 'full' ? disk : undefined;
}

/** Whether a disk has space for the store. */
export function spaceOf({ freeBytes }: Disk): 'enough' | 'low' | 'full' {
  if (freeBytes >= DISK_FREE_MIN_BYTES) return 'enough';
  return freeBytes < DISK_FULL_BYTES ? 'full' : 'low';
}

function freeText({ freeBytes }: Disk): string {
  return `${Math.floor(freeBytes / 1e6)} MB free`;
}

function queueCheck({ plantsInFlight, plantsInFlightMax, isFull }: ServiceState): ReadinessCheck {
  if (!isFull)
    return passed(
      'queue',
      `${plantsInFlight} of at most ${plantsInFlightMax} plants wait for a commit or are in one`,
    );
  return failed('queue', {
    fault: 'the limit of plants in flight is reached, so further plants get 503 responses',
    advice: 'find the senders of many plants; if commits are slow, check the disk or the database server',
  });
}

function latencyCheck({ commitSeconds, engine }: ServiceState): ReadinessCheck {
  if (commitSeconds <= COMMIT_MAX_SECONDS) return passed('latency', 'commits are fast');
  return failed('latency', {
    fault: `commits are slow, and plants wait for them (${commitSeconds.toFixed(1)} s on average)`,
    advice:
      engine.kind === 'postgres'
        ? 'check the database server, its disk, locks on its tables, and the network to it'
        : 'check the disk, and programs that use it much or lock the store',
  });
}

function requestsCheck({ rates }: ServiceState): ReadinessCheck {
  const { rejectedPerSecond, confirmedPerSecond, mostFrequentError } = rates;
  const isMost = rejectedPerSecond > MOSTLY_REJECTED_PER_SECOND && rejectedPerSecond > confirmedPerSecond;
  if (rejectedPerSecond <= REJECTED_PER_SECOND_MAX && !isMost)
    return passed('requests', 'few requests are rejected');
  const { number, message } = ERRORS[mostFrequentError];
  const stored = confirmedPerSecond < rejectedPerSecond / 4 ? ', and few plants are stored' : '';
  return failed('requests', {
    fault: `about ${Number(rejectedPerSecond.toPrecision(1))} requests per second are rejected, most often with the error ${number} ("${message}")${stored}`,
    advice: 'find the senders on the screen Rejected of the console, or with --log-requests on',
  });
}

function backupCheck(state: ServiceState): ReadinessCheck {
  if (state.engine.kind === 'postgres') return passed('backup', 'PostgreSQL has backup programs of its own');
  const fault = backupFault(state);
  if (fault === undefined) return passed('backup', 'the last backup is recent, or the store is new');
  return failed('backup', {
    fault,
    advice: 'run npx plant-store backup FILE with the --database of this service, and do so regularly',
  });
}
