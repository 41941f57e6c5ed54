import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { CheckpointReply, CheckpointRequest } from './checkpoint-thread.ts';
import { CHECKPOINT_INTERVAL_MS, WAL_RESTART_PAGES, WRITER_CHECKPOINT_PAGES_MAX } from './limits.ts';

/**
 * Keeps the write-ahead log short without stopping the writer: a thread of its own copies the log into the database
 * file while commits go on.
 *
 * SQLite restarts its log only when a write finds all of it copied, which never happens while commits keep coming. So
 * when the log is long and the thread has copied all but the last commits, the writer copies these itself, between two
 * commits (https://sqlite.org/wal.html#avoiding_excessively_large_wal_files).
 */
export class Checkpoints {
  readonly #path: string;
  readonly #finish: () => Promise<void>;
  #worker: Worker | undefined;
  /** Until the next checkpoint begins. */
  #timer: NodeJS.Timeout | undefined;
  #isRunning = false;
  /** Whether a commit ended while a checkpoint was running, which may have missed it. */
  #isDueAgain = false;
  #isClosed = false;
  /** What kept the last checkpoint from its end; undefined when nothing did. */
  failure: string | undefined;

  /**
   * @param path of the database file
   * @param finish has the writer copy what is left of the log
   */
  constructor(path: string, finish: () => Promise<void>) {
    this.#path = path;
    this.#finish = finish;
  }

  /** Is called after each commit. */
  committed(): void {
    if (this.#isClosed) return;
    if (this.#isRunning) this.#isDueAgain = true;
    else this.#timer ??= setTimeout(() => this.#begin(), CHECKPOINT_INTERVAL_MS).unref();
  }

  /** Closes the connection of the thread, once what it does is done; the next checkpoint opens another one. */
  async release(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#worker === undefined) return;
    const exit = once(this.#worker, 'exit');
    this.#worker.postMessage('close' satisfies CheckpointRequest);
    await exit;
  }

  /** Ends when no checkpoint is under way any more; none is begun from now on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.release();
  }

  #begin(): void {
    this.#timer = undefined;
    try {
      this.#worker ??= this.#startWorker();
      this.#isRunning = true;
      this.#worker.postMessage('checkpoint' satisfies CheckpointRequest);
    } catch (cause) {
      // A machine that gives no further thread; the next commit tries again.
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
    const isRestShort = walPages - copiedPages <= WRITER_CHECKPOINT_PAGES_MAX;
    // A failure is the writer's too, which tells whoever sends it plants.
    if (walPages >= WAL_RESTART_PAGES && isRestShort) await this.#finish().catch(() => undefined);
    this.#isRunning = false;
    if (!this.#isDueAgain) return;
    this.#isDueAgain = false;
    this.committed();
  }
}
