import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { NewStoredToken } from '../../contract/stored-token.ts';
import {
  type CommandRun,
  type EngineStatistics,
  type PlantWrite,
  type SchemaSteps,
  type StorageEngine,
  StoreDamaged,
  StoreRejected,
  StoreUnavailable,
  type WriteResult,
} from '../plant-store.ts';
import { packWrites, unpackResults } from './batch.ts';
import { Checkpoints } from './checkpoints.ts';
import { MEASURE_TIMEOUT_MS } from './limits.ts';
import type { SqliteSettings, StoreWriter, WriterCall, WriterReply } from './writer-thread.ts';

/**
 * The SQLite engine. Every operation runs on a writer thread, so a flush never blocks the event
 * loop. When the writer thread dies, its operations fail. The next operation starts another thread.
 */
export class SqliteEngine implements StorageEngine {
  /** While the writer flushes one batch, the next one is already in its queue. */
  readonly commitsInFlightMax = 2;
  /** Set by `open`. */
  schemaSteps!: SchemaSteps;
  readonly laneOf = (): string => '';
  readonly #settings: SqliteSettings;
  readonly #checkpoints: Checkpoints;
  readonly #flushes = { count: 0, totalMs: 0 };
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  #lastCall = 0;
  #lastMeasured = { walBytes: 0, diskFreeBytes: 0 };
  #measuring: Promise<void> | undefined;
  #worker: Worker | undefined;
  #reopening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #isClosed = false;

  private constructor(settings: SqliteSettings) {
    this.#settings = settings;
    this.#checkpoints = new Checkpoints(settings.path, () => this.#call('finishCheckpoint'));
  }

  /** Opens the store. Creates it when needed, and updates its schema. @throws {StoreRejected} */
  static async open(settings: SqliteSettings): Promise<SqliteEngine> {
    const engine = new SqliteEngine(settings);
    try {
      engine.schemaSteps = await engine.#call('schemaSteps');
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

  async probe(): Promise<void> {
    await this.#call('probe');
    this.#checkpoints.committed();
  }

  async statistics(): Promise<EngineStatistics> {
    // A file system that hangs blocks a thread of Node's small pool, so only one call is in flight.
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined));
    await Promise.race([this.#measuring, delay(MEASURE_TIMEOUT_MS, undefined, { ref: false })]);
    const isCheckpointFailing = this.#checkpoints.failure !== undefined;
    return { flushes: this.#flushes, isCheckpointFailing, ...this.#lastMeasured };
  }

  async #measure(): Promise<void> {
    const { path } = this.#settings;
    // 0 when unknown: a new or closed store has no log, and a deleted folder has no free space.
    const wal = await stat(`${path}-wal`).catch(() => undefined);
    const disk = await statfs(dirname(path)).catch(() => undefined);
    this.#lastMeasured = {
      walBytes: wal?.size ?? 0,
      diskFreeBytes: disk === undefined ? 0 : disk.bavail * disk.bsize,
    };
  }

  async check(): Promise<readonly string[]> {
    await this.#call('check');
    const { failure } = this.#checkpoints;
    if (failure === undefined) return [];
    return [`the write-ahead log cannot be copied into the database file, so it grows: ${failure}`];
  }

  readonly hasPlants = () => this.#call('hasPlants');
  readonly createToken = (token: NewStoredToken) => this.#call('createToken', token);
  readonly tokensChangedSince = (changeNumber: number) => this.#call('tokensChangedSince', changeNumber);
  readonly tokensFingerprint = () => this.#call('tokensFingerprint');
  readonly revokeToken = (label: string, at: number) => this.#call('revokeToken', label, at);
  readonly recordTokenUse = (ids: number[], day: string) => this.#call('recordTokenUse', ids, day);
  readonly createConsoleCode = (hash: string, expiresAt: number) =>
    this.#call('createConsoleCode', hash, expiresAt);
  readonly takeConsoleCodes = (hashes: string[], now: number) => this.#call('takeConsoleCodes', hashes, now);
  readonly recordRun = (run: CommandRun) => this.#call('recordRun', run);
  readonly lastRuns = () => this.#call('lastRuns');

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      // This comes first: SQLite deletes the log only when the last connection, the writer's,
      // closes.
      await this.#checkpoints.close();
      const closed = this.#worker === undefined ? undefined : this.#call('close');
      // A later call must not open the file again after the writer has closed it.
      this.#isClosed = true;
      await closed;
    } finally {
      await this.#worker?.terminate();
    }
  }

  #call<Operation extends keyof StoreWriter>(
    operation: Operation,
    ...args: Parameters<StoreWriter[Operation]>
  ): Promise<ReturnType<StoreWriter[Operation]>> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable('the store is closed'));
    const call = ++this.#lastCall;
    const pending = Promise.withResolvers<unknown>();
    this.#calls.set(call, pending);
    this.#worker ??= this.#startWorker();
    this.#worker.postMessage({ call, operation, args } satisfies WriterCall);
    return pending.promise as Promise<ReturnType<StoreWriter[Operation]>>;
  }

  #startWorker(): Worker {
    const worker = new Worker(new URL('./writer-thread.ts', import.meta.url), { workerData: this.#settings });
    worker.on('message', (reply: WriterReply) => this.#replied(reply));
    worker.on('error', cause => this.#workerDied(worker, cause));
    worker.on('exit', () => this.#workerDied(worker, undefined));
    return worker;
  }

  #replied({ call, result, failure }: WriterReply): void {
    const pending = this.#calls.get(call);
    this.#calls.delete(call);
    if (failure === undefined) {
      pending?.resolve(result);
      return;
    }
    if (failure.isFileReplaced) this.#reopening ??= this.#reopen();
    const { isRejection, isDamage, message } = failure;
    pending?.reject(new (isRejection ? StoreRejected : isDamage ? StoreDamaged : StoreUnavailable)(message));
  }

  /** The checkpoint thread closes the old files before the writer opens the new ones. */
  async #reopen(): Promise<void> {
    try {
      await this.#checkpoints.release();
      await this.#call('reopen');
    } catch {
      // If the writer died, the next writer opens the current files anyway.
    } finally {
      this.#reopening = undefined;
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
