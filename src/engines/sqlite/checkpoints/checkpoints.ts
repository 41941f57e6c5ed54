import type { Clock } from '../../../core/clock.ts';
import { CalledThread, type StartWorker } from '../threads/called-thread.ts';
import { WAL_RESTART_PAGES, WRITER_CHECKPOINT_PAGES_MAX } from '../wal-limits.ts';
import type { CheckpointCall, CheckpointProgress } from './checkpoint-thread.ts';

/** Delay from the first commit after a checkpoint to the next checkpoint. */
const CHECKPOINT_INTERVAL_MS = 100;

type State =
  | { kind: 'idle' }
  | { kind: 'delayed'; timer: Disposable }
  | { kind: 'running' }
  /** A checkpoint is running, and a commit ended after it had begun. */
  | { kind: 'dueAgain' }
  | { kind: 'closed' };

const IDLE: State = { kind: 'idle' };
const RUNNING: State = { kind: 'running' };
const DUE_AGAIN: State = { kind: 'dueAgain' };
const CLOSED: State = { kind: 'closed' };

/**
 * Keeps the write-ahead log short without blocking commits: a separate thread copies it into the
 * database file.
 *
 * When the log is long and only the last commits are left, the writer copies them between two
 * commits. The reason is that SQLite restarts the log only when a write finds it copied completely,
 * which never happens under load
 * (https://sqlite.org/wal.html#avoiding_excessively_large_wal_files).
 *
 * | state      | event                         | next state | what is sent (to)         |
 * | ---------- | ----------------------------- | ---------- | ------------------------- |
 * | idle       | a commit ends                 | delayed    |                           |
 * | delayed    | `CHECKPOINT_INTERVAL_MS` pass | running    | `checkpoint` (thread)     |
 * | running    | a commit ends                 | dueAgain   |                           |
 * | running    | the checkpoint ends           | idle       |                           |
 * | dueAgain   | the checkpoint ends           | delayed    |                           |
 * | running,   | the thread is done, the log   | no change  | `finishCheckpoint`        |
 * | dueAgain   | is long, the remainder short  |            | (writer)                  |
 * | delayed    | `release`                     | idle       | `close` (thread)          |
 * | other      | `release`                     | no change  | `close` (thread)          |
 * | any        | `close`                       | closed     | `close` (thread)          |
 * | closed     | anything else                 | closed     |                           |
 */
export class Checkpoints {
  readonly #thread: CalledThread<CheckpointCall, CheckpointProgress>;
  readonly #finish: () => Promise<unknown>;
  readonly #clock: Clock;
  #state: State = IDLE;
  #failure: string | undefined;

  /** @param finish makes the writer copy the rest of the log, so the next commit restarts it */
  constructor(path: string, finish: () => Promise<unknown>, clock: Clock, startWorker?: StartWorker) {
    const program = new URL('./checkpoint-thread.ts', import.meta.url);
    this.#thread = new CalledThread('checkpoint', program, path, startWorker);
    this.#finish = finish;
    this.#clock = clock;
  }

  /** The message of the error that ended the last checkpoint; undefined when it succeeded. */
  get failure(): string | undefined {
    return this.#failure;
  }

  committed(): void {
    if (this.#state.kind === 'idle') this.#delay();
    // The checkpoint in progress may miss this commit.
    else if (this.#state.kind === 'running') this.#enter(DUE_AGAIN);
  }

  /** Closes the files after the current checkpoint. The next one opens them again. */
  async release(): Promise<void> {
    if (this.#state.kind === 'delayed') this.#enter(IDLE);
    await this.#endThread();
  }

  /** Settles when no checkpoint is in progress. No further one is started. */
  async close(): Promise<void> {
    this.#enter(CLOSED);
    await this.#endThread();
  }

  /** The only function that changes the state. */
  #enter(next: State): void {
    if (this.#state.kind === 'closed') return;
    if (this.#state.kind === 'delayed') this.#state.timer[Symbol.dispose]();
    this.#state = next;
  }

  #delay(): void {
    const timer = this.#clock.setTimer(() => void this.#run(), CHECKPOINT_INTERVAL_MS, false);
    this.#enter({ kind: 'delayed', timer });
  }

  async #run(): Promise<void> {
    this.#enter(RUNNING);
    try {
      const { walPages, copiedPages } = await this.#thread.call('checkpoint');
      this.#failure = undefined;
      const isRemainderShort = walPages - copiedPages <= WRITER_CHECKPOINT_PAGES_MAX;
      // The writer reports its failure to the callers of its next operations.
      if (walPages >= WAL_RESTART_PAGES && isRemainderShort) await this.#finish().catch(() => undefined);
    } catch (cause) {
      this.#failure = (cause as Error).message;
    }
    if (this.#state.kind === 'dueAgain') this.#delay();
    else this.#enter(IDLE);
  }

  async #endThread(): Promise<void> {
    // A thread that dies closes its files, too.
    await this.#thread.end('close').catch(() => undefined);
  }
}
