import type { Clock } from '../../../core/clock.ts';
import { CalledThread, type StartWorker } from '../called-thread.ts';
import { WAL_RESTART_PAGES, WRITER_CHECKPOINT_PAGES_MAX } from '../wal-limits.ts';
import type { CheckpointCall, CheckpointProgress } from './checkpoint-thread.ts';

/** Delay from the first commit after a checkpoint to the next checkpoint. */
const CHECKPOINT_INTERVAL_MS = 100;

/**
 * Keeps the write-ahead log short without blocking commits: a separate thread copies it into the
 * database file.
 *
 * SQLite restarts the log only when a write finds it copied completely. Under load that never
 * happens. So when the log is long and only the last commits are left, the writer copies them
 * between two commits (https://sqlite.org/wal.html#avoiding_excessively_large_wal_files).
 *
 * | state   | event                                   | next state | sent message (to)           |
 * | ------- | --------------------------------------- | ---------- | --------------------------- |
 * | idle    | a commit ends                           | delayed    |                             |
 * | delayed | `CHECKPOINT_INTERVAL_MS` passes         | running    | `checkpoint` (thread)       |
 * | running | a commit ends: another run is due       | running    |                             |
 * | running | result: long log, short remainder       | running    | `wal_checkpoint` (writer)   |
 * | running | the checkpoint ends, another run is due | delayed    |                             |
 * | running | it ends otherwise                       | idle       |                             |
 * | running | `release`, `close`                      | running    | `close` (thread)            |
 * | other   | `release`, `close`                      | idle       | `close` (thread)            |
 */
export class Checkpoints {
  readonly #thread: CalledThread<CheckpointCall, CheckpointProgress>;
  readonly #finish: () => Promise<unknown>;
  readonly #clock: Clock;
  #timer: Disposable | undefined;
  #isRunning = false;
  /** Whether a commit ended during a checkpoint, which may have missed it. */
  #isDueAgain = false;
  #isClosed = false;
  /** The message of the error that ended the last checkpoint; undefined when it succeeded. */
  failure: string | undefined;

  /** @param finish makes the writer copy the rest of the log, so the next commit restarts it */
  constructor(path: string, finish: () => Promise<unknown>, clock: Clock, startWorker?: StartWorker) {
    const program = new URL('./checkpoint-thread.ts', import.meta.url);
    this.#thread = new CalledThread('checkpoint', program, path, startWorker);
    this.#finish = finish;
    this.#clock = clock;
  }

  committed(): void {
    if (this.#isClosed) return;
    if (this.#isRunning) this.#isDueAgain = true;
    else this.#timer ??= this.#clock.setTimer(() => void this.#run(), CHECKPOINT_INTERVAL_MS, false);
  }

  /** Closes the files after the current checkpoint. The next one opens them again. */
  async release(): Promise<void> {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    // A thread that dies closes its files, too.
    await this.#thread.end('close').catch(() => undefined);
  }

  /** Settles when no checkpoint is in progress. No further one is started. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.release();
  }

  async #run(): Promise<void> {
    this.#timer = undefined;
    this.#isRunning = true;
    try {
      const { walPages, copiedPages } = await this.#thread.call('checkpoint');
      this.failure = undefined;
      const isRemainderShort = walPages - copiedPages <= WRITER_CHECKPOINT_PAGES_MAX;
      // The writer reports its failure to the callers of its next operations.
      if (walPages >= WAL_RESTART_PAGES && isRemainderShort) await this.#finish().catch(() => undefined);
    } catch (cause) {
      this.failure = (cause as Error).message;
    }
    this.#isRunning = false;
    if (!this.#isDueAgain) return;
    this.#isDueAgain = false;
    this.committed();
  }
}
