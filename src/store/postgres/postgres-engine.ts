import type { NewStoredToken, StoredToken } from '../../contract/stored-token.ts';
import { GroupCommit } from '../group-commit.ts';
import {
  type CommandRun,
  type EngineStatistics,
  type PlantCommits,
  type PlantQueue,
  type PlantWrite,
  type RepeatedIdRule,
  type SchemaSteps,
  type StorageEngine,
  StoreRejected,
  type WriteResult,
} from '../plant-store.ts';
import { BatchCommit, confirmEverythingBefore } from './batch-commit.ts';
import { CitusWorkers, prepareCoordinator } from './citus-workers.ts';
import type { Connection } from './connection.ts';
import { ConnectionPool } from './connection-pool.ts';
import { durabilityWarnings } from './durability-warnings.ts';
import { INSUFFICIENT_PRIVILEGE, sqlStateOf } from './failure.ts';
import { HostSearch } from './host-search.ts';
import { type PostgresAddress, shownPostgresAddress } from './postgres-url.ts';
import { applySchemaSteps, checkRights, SERVICE_RIGHTS, schemaFaults, tableCheck } from './schema.ts';
import * as tokenTable from './token-table.ts';
import { WorkerQueues } from './worker-queues.ts';

interface PostgresSettings {
  address: PostgresAddress;
  repeatedIdRule: RepeatedIdRule;
  /** Maximum number of concurrent batches, each with its own connection. */
  connections: number;
}

/** A store in PostgreSQL or in an engine with its protocol. Any number of services may share it. */
export class PostgresEngine implements StorageEngine {
  readonly schemaSteps: SchemaSteps;
  readonly #search: HostSearch;
  readonly #pool: ConnectionPool;
  readonly #settings: PostgresSettings;
  readonly #workers: CitusWorkers;

  private constructor(
    settings: PostgresSettings,
    search: HostSearch,
    workers: CitusWorkers,
    schemaSteps: SchemaSteps,
  ) {
    this.schemaSteps = schemaSteps;
    this.#settings = settings;
    this.#search = search;
    this.#pool = new ConnectionPool(search, connectionsMax(settings));
    this.#workers = workers;
  }

  /** Opens the store. Creates it when needed, and updates its schema. @throws {StoreRejected} */
  static async open(settings: PostgresSettings): Promise<PostgresEngine> {
    const workers = new CitusWorkers(settings.address, connectionsMax(settings));
    const search = new HostSearch(settings.address, prepareCoordinator);
    const [connection, schemaSteps] = await search.open(async opened => {
      const steps = await applySchemaSteps(opened);
      await checkRights(opened, SERVICE_RIGHTS);
      await workers.refresh(opened);
      return steps;
    });
    const engine = new PostgresEngine(settings, search, workers, schemaSteps);
    engine.#pool.add(connection);
    return engine;
  }

  openQueue(commit: PlantCommits['commit']): PlantQueue {
    const open = (commitsInFlightMax: number) =>
      new GroupCommit({ commit, commitsInFlightMax, isSequential: false });
    if (!this.#workers.areUsed) return open(this.#settings.connections);
    // One batch at a time is larger, so its plants cost the worker less.
    return new WorkerQueues(
      id => this.#workers.workerOf(id),
      () => open(1),
    );
  }

  async commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const [first] = writes;
    if (first === undefined) return [];
    const batch = new BatchCommit(writes, this.#settings.repeatedIdRule);
    return await this.#workers.use(first.plant.id, this.#pool, connection => batch.run(connection));
  }

  async probe(): Promise<void> {
    await this.#pool.use(async connection => {
      // Needs the locks and rights of an insert. On Citus it would need all workers, but the
      // service is ready while one of them can be used.
      const text = `INSERT INTO plant_revision SELECT * FROM plant_revision WHERE NOT ${tableCheck(false)}`;
      if (!connection.isCitus) await connection.run({ text });
      await confirmEverythingBefore(connection);
    });
    await this.#workers.check();
  }

  async check(): Promise<readonly string[]> {
    const warnings = await this.#pool.use(async connection => {
      await this.#workers.refresh(connection);
      // A primary without its synchronous standby runs queries, but confirms no commit.
      await confirmEverythingBefore(connection);
      const faults = await schemaFaults(connection);
      return faults.concat(await durabilityWarnings(connection, () => this.#search.connect()));
    });
    return [...warnings, ...(await this.#workers.check())];
  }

  async statistics(): Promise<EngineStatistics> {
    return { connections: this.#pool.connections + this.#workers.connections };
  }

  async hasPlants(): Promise<boolean> {
    const text = 'SELECT 1 FROM plant_revision LIMIT 1';
    return (await this.#pool.use(connection => connection.run({ text }))).length > 0;
  }

  createToken(token: NewStoredToken): Promise<StoredToken | undefined> {
    return this.#asOwner(connection => tokenTable.createToken(connection, token));
  }

  tokensChangedSince(changeNumber: number): Promise<StoredToken[]> {
    return this.#pool.use(connection => tokenTable.tokensChangedSince(connection, changeNumber));
  }

  tokensFingerprint(): Promise<string> {
    return this.#pool.use(tokenTable.tokensFingerprint);
  }

  revokeToken(label: string, revokedAt: number): Promise<StoredToken | undefined> {
    return this.#asOwner(connection => tokenTable.revokeToken(connection, label, revokedAt));
  }

  recordTokenUse(tokenIds: number[], day: string): Promise<void> {
    return this.#pool.use(connection => tokenTable.recordTokenUse(connection, tokenIds, day));
  }

  async createConsoleCode(hash: string, expiresAt: number): Promise<void> {
    const text = `WITH expired AS (DELETE FROM console_code WHERE expires_at <= $1)
      INSERT INTO console_code VALUES ($2, $3) ON CONFLICT (hash) DO NOTHING`;
    const values = [Date.now(), hash, expiresAt];
    // After a lost result the code exists, and the retry changes nothing.
    await this.#pool.use(connection => connection.commit({ text, values }));
  }

  async takeConsoleCodes(hashes: string[], now: number): Promise<string[]> {
    const text = 'DELETE FROM console_code WHERE hash = ANY($1) RETURNING hash, expires_at > $2';
    const taken = await this.#pool.use(connection => connection.commit({ text, values: [hashes, now] }));
    return taken.filter(([, isValid]) => isValid === 't').map(([hash]) => hash!);
  }

  async recordRun({ command, endedAt, result }: CommandRun): Promise<void> {
    const text = `INSERT INTO last_run VALUES ($1, $2, $3) ON CONFLICT (command)
      DO UPDATE SET ended_at = excluded.ended_at, result = excluded.result`;
    await this.#pool.use(connection => connection.commit({ text, values: [command, endedAt, result] }));
  }

  async lastRuns(): Promise<CommandRun[]> {
    const text = 'SELECT command, ended_at, result FROM last_run ORDER BY command';
    const rows = await this.#pool.use(connection => connection.run({ text }));
    return rows.map(([command, endedAt, result]) => {
      return { command: command as CommandRun['command'], endedAt: Number(endedAt), result: result! };
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.#pool.close(), this.#workers.close()]);
  }

  /** Explains a missing right to the user of the command line. */
  async #asOwner<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      return await this.#pool.use(work);
    } catch (error) {
      const { cause } = error as Error;
      if (sqlStateOf(cause ?? error) !== INSUFFICIENT_PRIVILEGE) throw error;
      throw new StoreRejected(
        `the store at ${shownPostgresAddress(this.#settings.address)}: only the owner of the store may create and revoke tokens; name the role of the owner in --database`,
        { cause },
      );
    }
  }
}

/** One more than for plants: tokens and readiness never wait for plants. */
function connectionsMax({ connections }: PostgresSettings): number {
  return connections + 1;
}
