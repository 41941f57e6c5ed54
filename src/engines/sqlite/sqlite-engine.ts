import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Clock, SYSTEM_CLOCK } from '../../core/clock.ts';
import { GroupCommit } from '../../core/commit/group-commit.ts';
import type { PlantCommits, PlantQueue, PlantWrite, WriteResult } from '../../core/commit/plant-commits.ts';
import { OperatorTables } from '../operator-tables.ts';
import type { SchemaSteps, SqliteStatistics, StorageEngine } from '../storage-engine.ts';
import { CalledThread, type StartWorker } from './called-thread.ts';
import { Checkpoints } from './checkpoints/checkpoints.ts';
import { prepareFile } from './files/store-files.ts';
import { type BatchResults, packWrites, unpackResults } from './packed-batch.ts';
import { explainFailure, StoreFileReplaced } from './sqlite-errors.ts';
import type { SqliteSettings, StoreWriter, WriterCall } from './writer-thread.ts';

/**
 * Longest time that the event loop blocks for a commit of the only sender. It blocks only if the
 * last flush took less time than this.
 */
const COMMIT_AWAITED_MS = 1;
/** Timeout of a hanging file system. After it, the last known sizes are used. */
const MEASURE_TIMEOUT_MS = 500;

/**
 * The SQLite engine. Every operation runs on a writer thread, so a slow flush does not block the
 * event loop. When the thread dies, its operations fail. The next operation starts another thread.
 */
export class SqliteEngine implements StorageEngine {
  readonly schemaSteps: SchemaSteps;
  readonly tables: OperatorTables;
  readonly #path: string;
  readonly #writer: CalledThread<WriterCall, unknown>;
  readonly #checkpoints: Checkpoints;
  readonly #clock: Clock;
  readonly #flushes = { count: 0, totalMs: 0 };
  #lastFlushMs = 0;
  #lastMeasured: Pick<SqliteStatistics, 'walBytes' | 'disk'> = { walBytes: 0, disk: undefined };
  #measuring: Promise<void> | undefined;
  #reopening: Promise<void> | undefined;

  private constructor(
    path: string,
    writer: CalledThread<WriterCall, unknown>,
    schemaSteps: SchemaSteps,
    clock: Clock,
    startWorker?: StartWorker,
  ) {
    this.#path = path;
    this.#writer = writer;
    this.schemaSteps = schemaSteps;
    this.#clock = clock;
    this.#checkpoints = new Checkpoints(path, () => this.#call(['finishCheckpoint']), clock, startWorker);
    this.tables = new OperatorTables({
      readRows: (text, values) => this.#call(['readRows', text, values]),
      writeRows: (text, values) => this.#call(['writeRows', text, values]),
      confirmRows: () => this.probe(),
      tokenFingerprints: () => this.#call(['tokenFingerprints']),
      tokenDigest: undefined,
    });
  }

  /**
   * Opens the store. Creates it when needed, and updates its schema.
   *
   * @param settings with a path that may be a symbolic link
   * @param clock the clock of a simulation, as is `startWorker`
   * @throws {StoreRejected}
   */
  static async open(
    settings: SqliteSettings,
    clock: Clock = SYSTEM_CLOCK,
    startWorker?: StartWorker,
  ): Promise<SqliteEngine> {
    const path = explainFailure(settings.path, () => prepareFile(settings.path));
    const program = new URL('./writer-thread.ts', import.meta.url);
    const writer = new CalledThread<WriterCall, unknown>(
      'writer',
      program,
      { ...settings, path },
      startWorker,
    );
    try {
      const schemaSteps = (await writer.call(['schemaSteps'])) as SchemaSteps;
      return new SqliteEngine(path, writer, schemaSteps, clock, startWorker);
    } catch (error) {
      await writer.end();
      throw error;
    }
  }

  openQueue(commit: PlantCommits['commit']): PlantQueue {
    // While the writer flushes one batch, the next one is already in its queue.
    return new GroupCommit({ commit, commitsInFlightMax: 2, isSequential: true }, this.#clock);
  }

  async commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const blocks = writes[0]?.isOnlySender && this.#lastFlushMs < COMMIT_AWAITED_MS;
    const reply = this.#call(['commit', ...packWrites(writes)], blocks ? COMMIT_AWAITED_MS : 0);
    const results: BatchResults = JSON.parse(await reply);
    this.#checkpoints.committed();
    this.#lastFlushMs = results.flushMs;
    this.#flushes.count++;
    this.#flushes.totalMs += results.flushMs;
    return unpackResults(results);
  }

  async probe(): Promise<void> {
    await this.#call(['probe']);
    this.#checkpoints.committed();
  }

  async statistics(): Promise<SqliteStatistics> {
    // A file system that hangs blocks a thread of Node's small pool, so only one call is in flight.
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined));
    await Promise.race([this.#measuring, delay(MEASURE_TIMEOUT_MS, undefined, { ref: false })]);
    return {
      kind: 'sqlite',
      flushes: this.#flushes,
      isCheckpointFailing: this.#checkpoints.failure !== undefined,
      ...this.#lastMeasured,
    };
  }

  async #measure(): Promise<void> {
    const path = this.#path;
    // A new or closed store has no log.
    const wal = await stat(`${path}-wal`).catch(() => undefined);
    const disk = await statfs(dirname(path)).catch(() => undefined);
    this.#lastMeasured = {
      walBytes: wal?.size ?? 0,
      disk: disk && {
        bytes: disk.blocks * disk.bsize,
        freeBytes: disk.bavail * disk.bsize,
      },
    };
  }

  async warnings(): Promise<readonly string[]> {
    await this.#call(['checkSchema']);
    const { failure } = this.#checkpoints;
    if (failure === undefined) return [];
    return [`the write-ahead log cannot be copied into the database file, so it grows: ${failure}`];
  }

  async close(): Promise<void> {
    await this.#reopening;
    // The checkpoints close first, since SQLite deletes the log when the last connection closes.
    await this.#checkpoints.close();
    await this.#writer.close(['close']);
  }

  async #call<Operation extends keyof StoreWriter>(
    call: [operation: Operation, ...args: Parameters<StoreWriter[Operation]>],
    blockMs = 0,
  ): Promise<ReturnType<StoreWriter[Operation]>> {
    try {
      return (await this.#writer.call(call, blockMs)) as ReturnType<StoreWriter[Operation]>;
    } catch (error) {
      if (error instanceof StoreFileReplaced) this.#reopening ??= this.#reopen();
      throw error;
    }
  }

  /** The checkpoint thread closes the old files before the writer opens the new ones. */
  async #reopen(): Promise<void> {
    try {
      await this.#checkpoints.release();
      await this.#call(['reopen']);
    } catch {
      // If the writer died, the next writer opens the current files anyway.
    } finally {
      this.#reopening = undefined;
    }
  }
}
