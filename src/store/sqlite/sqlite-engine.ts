import { statSync } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { NewStoredToken, StoredToken } from '../../contract/stored-token.ts';
import {
  type EngineFigures,
  type PlantWrite,
  type StorageEngine,
  StoreRefused,
  StoreUnavailable,
  type WriteResult,
} from '../plant-store.ts';
import { packWrites, unpackResults } from './batch.ts';
import { Checkpoints } from './checkpoints.ts';
import type { SqliteSettings, SqliteStore } from './sqlite-store.ts';
import type { WriterAnswer, WriterCall } from './writer-thread.ts';

type Operation = keyof SqliteStore;

/**
 * The SQLite engine as the service sees it: every operation runs on a writer thread, so that a flush never holds
 * up the sockets. A writer thread that dies takes the operations it had with it; the next one starts another.
 */
export class SqliteEngine implements StorageEngine {
  /** One batch is flushed while the next one already waits at the writer. */
  readonly commitsInFlightMax = 2;
  readonly isNew: boolean;
  readonly #settings: SqliteSettings;
  readonly #checkpoints: Checkpoints;
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  #worker: Worker | undefined;
  readonly #flushes = { count: 0, totalMs: 0 };
  #lastCall = 0;
  #lettingGo: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #isClosed = false;

  private constructor(settings: SqliteSettings) {
    this.#settings = settings;
    this.#checkpoints = new Checkpoints(settings.path, () => this.#call('finishCheckpoint'));
    // The lock of a service makes the file, and leaves it empty.
    this.isNew = (statSync(settings.path, { throwIfNoEntry: false })?.size ?? 0) === 0;
  }

  /**
   * Opens the store, makes it when there is none, and brings its schema up to date.
   *
   * @throws {StoreRefused} when it cannot be opened as it stands
   */
  static async open(settings: SqliteSettings): Promise<SqliteEngine> {
    const engine = new SqliteEngine(settings);
    try {
      await engine.check();
      return engine;
    } catch (error) {
      await engine.#worker?.terminate();
      throw error;
    }
  }

  async commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const results = await this.#call('commit', packWrites(writes));
    this.#checkpoints.committed();
    this.#flushes.count++;
    this.#flushes.totalMs += results.flushMs;
    return unpackResults(results);
  }

  async figures(): Promise<EngineFigures> {
    const { path } = this.#settings;
    // What cannot be read is 0: a store that is new or closed has no log, and a folder that is gone takes nothing.
    const [logBytes, diskFreeBytes] = await Promise.all([
      stat(`${path}-wal`).then(
        ({ size }) => size,
        () => 0,
      ),
      statfs(dirname(path)).then(
        ({ bavail, bsize }) => bavail * bsize,
        () => 0,
      ),
    ]);
    const isCheckpointFailing = this.#checkpoints.failure !== undefined;
    return { flushes: this.#flushes, logBytes, isCheckpointFailing, diskFreeBytes };
  }

  async check(): Promise<readonly string[]> {
    await this.#call('check');
    const { failure } = this.#checkpoints;
    return failure === undefined ? [] : [checkpointWarning(failure)];
  }

  hasPlants(): Promise<boolean> {
    return this.#call('hasPlants');
  }

  createToken(token: NewStoredToken): Promise<StoredToken | undefined> {
    return this.#call('createToken', token);
  }

  tokensChangedSince(changeNumber: number): Promise<StoredToken[]> {
    return this.#call('tokensChangedSince', changeNumber);
  }

  tokensFingerprint(): Promise<string> {
    return this.#call('tokensFingerprint');
  }

  revokeToken(label: string, revokedAt: number): Promise<StoredToken | undefined> {
    return this.#call('revokeToken', label, revokedAt);
  }

  recordTokenUse(tokenIds: number[], day: string): Promise<void> {
    return this.#call('recordTokenUse', tokenIds, day);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // First, so that the writer's is the last connection, which leaves no log behind.
    await this.#checkpoints.close();
    const closed = this.#worker === undefined ? undefined : this.#call('close');
    // What is called from here on must not open the file again behind its close.
    this.#isClosed = true;
    try {
      await closed;
    } finally {
      await this.#worker?.terminate();
    }
  }

  #call<Name extends Operation>(
    operation: Name,
    ...args: Parameters<SqliteStore[Name]>
  ): Promise<ReturnType<SqliteStore[Name]>> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable('the store is closed'));
    const call = ++this.#lastCall;
    const pending = Promise.withResolvers<unknown>();
    this.#calls.set(call, pending);
    this.#worker ??= this.#startWorker();
    this.#worker.postMessage({ call, operation, args } satisfies WriterCall);
    return pending.promise as Promise<ReturnType<SqliteStore[Name]>>;
  }

  #startWorker(): Worker {
    const worker = new Worker(new URL('./writer-thread.ts', import.meta.url), { workerData: this.#settings });
    worker.on('message', (answer: WriterAnswer) => this.#answered(answer));
    worker.on('error', cause => this.#workerDied(worker, cause));
    worker.on('exit', () => this.#workerDied(worker, undefined));
    return worker;
  }

  #answered({ call, result, failure }: WriterAnswer): void {
    const pending = this.#calls.get(call);
    this.#calls.delete(call);
    if (failure?.storeGone) this.#lettingGo ??= this.#letGo();
    if (failure === undefined) pending?.resolve(result);
    else if (failure.storeRefused) pending?.reject(new StoreRefused(failure.message));
    else pending?.reject(new StoreUnavailable(saidOf(failure)));
  }

  /** The checkpoint thread closes its connection to what is gone, and then the writer may open what is there now. */
  async #letGo(): Promise<void> {
    try {
      await this.#checkpoints.release();
      await this.#call('reopen');
    } catch {
      // A writer that died is followed by one that knows nothing of what is gone.
    } finally {
      this.#lettingGo = undefined;
    }
  }

  #workerDied(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const pending of calls) {
      pending.reject(new StoreUnavailable('the writer thread died', { cause }));
    }
  }
}

function saidOf({ message, errcode }: NonNullable<WriterAnswer['failure']>): string {
  return errcode === undefined ? message : `${message} (SQLite result code ${errcode})`;
}

function checkpointWarning(failure: string): string {
  return `the write-ahead log cannot be copied into the database file, so it grows: ${failure}`;
}
