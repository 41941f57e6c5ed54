import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { CheckpointReply, CheckpointRequest } from './checkpoint-thread.ts';
import { CHECKPOINT_INTERVAL_MS, WAL_RESTART_PAGES, WRITER_CHECKPOINT_PAGES_MAX } from './limits.ts';

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
 * | running | reply: long log, short remainder        | running    | `finishCheckpoint` (writer) |
 * | running | the checkpoint ends, another run is due | delayed    |                             |
 * | running | it ends otherwise, or the thread dies   | idle       |                             |
 * | any     | `release`, `close`                      | idle       | `close` (thread)            |
 */
export class Checkpoints {
  readonly #path: string;
  readonly #finish: () => Promise<void>;
  #worker: Worker | undefined;
  /** Starts the next checkpoint. */
  #timer: NodeJS.Timeout | undefined;
  #isRunning = false;
  /** Whether a commit ended during a checkpoint, which may have missed it. */
  #isDueAgain = false;
  #isClosed = false;
  /** The message of the error that ended the last checkpoint; undefined when it succeeded. */
  failure: string | undefined;

  /**
   * @param path path of the database file
   * @param finish makes the writer copy the rest of the log
   */
  constructor(path: string, finish: () => Promise<void>) {
    this.#path = path;
    this.#finish = finish;
  }

  /** Is called after each commit. */
  committed(): void {
    if (this.#isClosed) return;
    if (this.#isRunning) this.#isDueAgain = true;
    else this.#timer ??= setTimeout(() => this.#start(), CHECKPOINT_INTERVAL_MS).unref();
  }

  /** Ends the thread after its current work. The next checkpoint starts another thread. */
  async release(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#worker === undefined) return;
    const exit = once(this.#worker, 'exit');
    this.#worker.postMessage('close' satisfies CheckpointRequest);
    await exit;
  }

  /** Settles when no checkpoint is in progress. No further one is started. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.release();
  }

  #start(): void {
    this.#timer = undefined;
    try {
      this.#worker ??= this.#startWorker();
      this.#isRunning = true;
      this.#worker.postMessage('checkpoint' satisfies CheckpointRequest);
    } catch (cause) {
      // The system cannot start a thread. The next commit tries again.
      this.failure = (cause as Error).message;
    }
  }

  #startWorker(): Worker {
    const worker = new Worker(new URL('./checkpoint-thread.ts', import.meta.url), { workerData: this.#path });
    worker.on('message', (reply: CheckpointReply) => void this.#ended(reply));
    worker.on('error', cause => {
      this.failure = cause instanceof Error ? cause.message : String(cause);
    });
    worker.on('exit', () => {
      this.#worker = undefined;
      this.#isRunning = false;
    });
    worker.unref();
    return worker;
  }

  async #ended({ walPages, copiedPages, failure }: CheckpointReply): Promise<void> {
    this.failure = failure;
    const isRemainderShort = walPages - copiedPages <= WRITER_CHECKPOINT_PAGES_MAX;
    // The writer reports its failure to the callers of its next operations.
    if (walPages >= WAL_RESTART_PAGES && isRemainderShort) await this.#finish().catch(() => undefined);
    this.#isRunning = false;
    if (!this.#isDueAgain) return;
    this.#isDueAgain = false;
    this.committed();
  }
}
