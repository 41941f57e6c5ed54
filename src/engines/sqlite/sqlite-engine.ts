import { type Clock, SYSTEM_CLOCK } from '../../core/clock.ts';
import { GroupCommit } from '../../core/commit/group-commit.ts';
import type { CommitEngine, PlantQueue, PlantWrite, WriteResult } from '../../core/commit/plant-commits.ts';
import type { Problem } from '../../core/problem.ts';
import type { SchemaSteps, SqliteStatistics, StorageEngine } from '../storage-engine.ts';
import { OperatorTables } from '../tables/operator-tables.ts';
import { firstPlantAt } from '../tables/revision-rows.ts';
import type { TableAccess } from '../tables/table-access.ts';
import { TokenTable } from '../tables/token-table.ts';
import { Checkpoints } from './checkpoints/checkpoints.ts';
import { prepareStoreFile } from './files/store-files.ts';
import { StoreSizes } from './files/store-sizes.ts';
import { packWrites, unpackResults } from './packed-batch.ts';
import { orRejected, StoreFileReplaced } from './sqlite-errors.ts';
import { CalledThread, type StartWorker } from './threads/called-thread.ts';
import type { SqliteSettings, StoreWriter, WriterCall } from './writer-thread.ts';

/**
 * Longest time that the event loop blocks for a commit of a client that sends one plant at a time.
 * It blocks only if the last flush took less time than this.
 */
const COMMIT_AWAITED_MS = 1;

type Writer = CalledThread<WriterCall, unknown>;

/**
 * The SQLite engine. Every operation runs on a writer thread, so a slow flush does not block the
 * event loop. When the thread dies, its operations fail. The next operation starts another thread.
 */
export class SqliteEngine implements StorageEngine {
  readonly schemaSteps: SchemaSteps;
  readonly operatorTables: OperatorTables;
  readonly tokenTable: TokenTable;
  readonly firstPlantAt: () => Promise<number | undefined>;
  readonly #sizes: StoreSizes;
  readonly #writer: Writer;
  readonly #checkpoints: Checkpoints;
  readonly #clock: Clock;
  readonly #flushes = { count: 0, totalMs: 0 };
  #lastFlushMs = 0;
  #reopening: Promise<void> | undefined;

  private constructor(
    path: string,
    writer: Writer,
    schemaSteps: SchemaSteps,
    clock: Clock,
    startWorker?: StartWorker,
  ) {
    this.#sizes = new StoreSizes(path);
    this.#writer = writer;
    this.schemaSteps = schemaSteps;
    this.#clock = clock;
    this.#checkpoints = new Checkpoints(path, () => this.#call(['finishCheckpoint']), clock, startWorker);
    const access: TableAccess = {
      readRows: (text, values) => this.#call(['readRows', text, values]),
      writeRows: (text, values) => this.#call(['writeRows', text, values]),
    };
    this.operatorTables = new OperatorTables(access);
    this.firstPlantAt = () => firstPlantAt(access.readRows);
    this.tokenTable = new TokenTable(access, {
      confirmRows: () => this.#call(['confirmRows']),
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
    const path = orRejected(settings.path, () => prepareStoreFile(settings.path));
    const program = new URL('./writer-thread.ts', import.meta.url);
    const writer: Writer = new CalledThread('writer', program, { ...settings, path }, startWorker);
    try {
      const schemaSteps = (await writer.call(['schemaSteps'])) as SchemaSteps;
      return new SqliteEngine(path, writer, schemaSteps, clock, startWorker);
    } catch (error) {
      await writer.end();
      throw error;
    }
  }

  openQueue(commit: CommitEngine['commit']): PlantQueue {
    // While the writer flushes one batch, the next one is already in its queue.
    const awaitCommit = (): void => {
      if (this.#lastFlushMs < COMMIT_AWAITED_MS) this.#writer.awaitReply(COMMIT_AWAITED_MS);
    };
    return new GroupCommit({ commit, commitsInFlightMax: 2, isSequential: true, awaitCommit }, this.#clock);
  }

  async commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const { results, flushMs } = unpackResults(await this.#call(['commit', ...packWrites(writes)]));
    this.#checkpoints.committed();
    this.#lastFlushMs = flushMs;
    this.#flushes.count++;
    this.#flushes.totalMs += flushMs;
    return results;
  }

  async probe(): Promise<void> {
    await this.#call(['probe']);
    this.#checkpoints.committed();
  }

  async statistics(): Promise<SqliteStatistics> {
    return {
      kind: 'sqlite',
      flushes: this.#flushes,
      isCheckpointFailing: this.#checkpoints.failure !== undefined,
      ...(await this.#sizes.read()),
    };
  }

  async warnings(): Promise<readonly Problem[]> {
    await this.#call(['checkSchema']);
    const { failure } = this.#checkpoints;
    if (failure === undefined) return [];
    return [
      {
        fault: `the write-ahead log cannot be copied into the database file, so it grows: ${failure}`,
        advice: 'check the disk and the files of the store, and whether another program locks them',
      },
    ];
  }

  async close(): Promise<void> {
    await this.#reopening;
    // The checkpoints close first, since SQLite deletes the log when the last connection closes.
    await this.#checkpoints.close();
    await this.#writer.close(['close']);
  }

  async #call<Operation extends keyof StoreWriter>(
    call: [operation: Operation, ...args: Parameters<StoreWriter[Operation]>],
  ): Promise<ReturnType<StoreWriter[Operation]>> {
    try {
      return (await this.#writer.call(call)) as ReturnType<StoreWriter[Operation]>;
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
