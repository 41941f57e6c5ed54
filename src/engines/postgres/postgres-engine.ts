import { SYSTEM_CLOCK } from '../../core/clock.ts';
import { GroupCommit } from '../../core/commit/group-commit.ts';
import type {
  CommitEngine,
  PlantQueue,
  PlantWrite,
  RepeatedIdRule,
  WriteResult,
} from '../../core/commit/plant-commits.ts';
import { StoreRejected, StoreUnavailable } from '../../core/commit/store-errors.ts';
import type { Problem } from '../../core/problem.ts';
import { TOKEN_GROUP_SIZE } from '../../core/tokens/stored-token.ts';
import type { PostgresStatistics, SchemaSteps, StorageEngine } from '../storage-engine.ts';
import { DATABASE_OPTION, SCHEMA_ADVICE } from '../store-rejections.ts';
import { OperatorTables } from '../tables/operator-tables.ts';
import { firstPlantAt } from '../tables/revision-rows.ts';
import { numberOf, type Query, type Row, type TableAccess, textOf } from '../tables/table-access.ts';
import { TokenTable } from '../tables/token-table.ts';
import { BatchCommit } from './batch/batch-commit.ts';
import { confirmEverythingBefore } from './batch/confirm-commits.ts';
import { CopyChoice } from './batch/copy-choice.ts';
import { STATEMENT_TIMEOUT_MS } from './connection.ts';
import { ConnectionPool } from './connections/connection-pool.ts';
import { type FirstConnection, HostSearch } from './connections/host-search.ts';
import { INSUFFICIENT_PRIVILEGE, sqlStateOf } from './postgres-errors.ts';
import { type PostgresAddress, shownPostgresAddress } from './postgres-url.ts';
import { durabilityWarnings } from './schema/durability-warnings.ts';
import { applySchemaSteps, rejectMissingRights, SERVICE_RIGHTS, schemaFaults } from './schema/schema.ts';
import { TABLE_GUARD } from './schema/table-guard.ts';
import type { PlantServers, ServicePools } from './topology/topology.ts';

interface PostgresSettings {
  address: PostgresAddress;
  repeatedIdRule: RepeatedIdRule;
  /** Maximum number of concurrent batches, each with its own connection. */
  connections: number;
}

/** SQL that covers all columns that decide whether a token is valid. */
const TOKEN_DIGEST = `md5(string_agg(
    hash || ' ' || id::text || ' ' || change_number::text || ' ' ||
      coalesce(expires_at::text, '') || ' ' || coalesce(revoked_at::text, ''),
    ' ' ORDER BY id
  ))`;
const TOKEN_FINGERPRINTS = `SELECT id / ${TOKEN_GROUP_SIZE}, ${TOKEN_DIGEST} FROM token GROUP BY 1`;

/** A store in PostgreSQL or in an engine with its protocol. Any number of services may share it. */
export class PostgresEngine implements StorageEngine {
  readonly schemaSteps: SchemaSteps;
  readonly operatorTables: OperatorTables;
  readonly tokenTable: TokenTable;
  readonly firstPlantAt: () => Promise<number | undefined>;
  readonly #settings: PostgresSettings;
  readonly #pool: ConnectionPool;
  readonly #servers: PlantServers;
  readonly #copyChoice = new CopyChoice();

  private constructor(
    settings: PostgresSettings,
    pool: ConnectionPool,
    servers: PlantServers,
    schemaSteps: SchemaSteps,
  ) {
    this.#settings = settings;
    this.#pool = pool;
    this.#servers = servers;
    this.schemaSteps = schemaSteps;
    const commitRows: Query = (text, values) => this.#commitRows(text, values);
    const access: TableAccess = { readRows: commitRows, writeRows: commitRows };
    this.operatorTables = new OperatorTables(access);
    this.firstPlantAt = () => firstPlantAt(access.readRows);
    this.tokenTable = new TokenTable(access, {
      confirmRows: () => this.#pool.use(confirmEverythingBefore),
      tokenFingerprints: () => this.#tokenFingerprints(),
      tokenDigest: TOKEN_DIGEST,
    });
  }

  /**
   * Opens the store. Creates it when needed, and updates its schema.
   *
   * @param first settings of the first connection; undefined if it is opened like later ones
   * @throws {StoreRejected}
   */
  static async open(settings: PostgresSettings, first?: FirstConnection): Promise<PostgresEngine> {
    const { address, connections } = settings;
    const search = new HostSearch(address, opened => opened.topology.prepare(opened, 'write'));
    // The pool has one more connection for tokens and one for `warnings`, so neither waits for
    // plants. They share one pool: after a failover, tokens must come from the host of the plants.
    const pool = new ConnectionPool(search, connections + 2);
    const pools: ServicePools = {
      address,
      batchesInFlightMax: connections,
      pool,
      openPool: connectionsMax => new ConnectionPool(search, connectionsMax),
      openPoolOf: (host, prepare, connectionsMax) =>
        new ConnectionPool(new HostSearch({ ...address, hosts: [host] }, prepare), connectionsMax),
      clock: SYSTEM_CLOCK,
    };
    const { connection, prepared } = await search.open(async opened => {
      await opened.setStatementTimeout();
      const schemaSteps = await applySchemaSteps(opened);
      await rejectMissingRights(opened, SERVICE_RIGHTS);
      const servers = await opened.topology.openServers(opened, pools);
      await opened.setStatementTimeout(STATEMENT_TIMEOUT_MS);
      return { schemaSteps, servers };
    }, first);
    pool.add(connection);
    return new PostgresEngine(settings, pool, prepared.servers, prepared.schemaSteps);
  }

  openQueue(commit: CommitEngine['commit']): PlantQueue {
    return this.#servers.openQueue(
      commitsInFlightMax => new GroupCommit({ commit, commitsInFlightMax, isSequential: false }),
    );
  }

  async commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const [first] = writes;
    if (first === undefined) return [];
    const batch = new BatchCommit(writes, this.#settings.repeatedIdRule, this.#copyChoice);
    return await this.#servers.use(first.plant.id, connection => batch.run(connection));
  }

  async probe(): Promise<void> {
    await this.#pool.use(async connection => {
      // This statement needs the locks and rights of an insert. It would need all servers, but the
      // service is ready while one of several can be used.
      const text = `INSERT INTO plant_revision SELECT * FROM plant_revision WHERE NOT ${TABLE_GUARD}`;
      if (!connection.topology.spansServers) await connection.run({ text });
      await confirmEverythingBefore(connection);
    });
    await this.#servers.warnings();
  }

  async warnings(): Promise<readonly Problem[]> {
    await this.#servers.refresh();
    const warnings = await this.#pool.use(async connection => {
      // A primary without its synchronous standby runs queries, but confirms no commit.
      await confirmEverythingBefore(connection);
      const faults = await schemaFaults(connection);
      const schemaWarnings = faults.map(fault => ({ fault, advice: SCHEMA_ADVICE }));
      return [...schemaWarnings, ...(await durabilityWarnings(connection))];
    });
    return [...warnings, ...(await this.#servers.warnings())];
  }

  async statistics(): Promise<PostgresStatistics> {
    return { kind: 'postgres', connections: this.#pool.connections + this.#servers.connections };
  }

  async close(): Promise<void> {
    await Promise.all([this.#pool.close(), this.#servers.close()]);
  }

  async #tokenFingerprints(): Promise<ReadonlyMap<number, string>> {
    const statement = { name: 'token_fingerprints', text: TOKEN_FINGERPRINTS };
    const rows = await this.#pool.use(connection => connection.run(statement));
    return new Map(rows.map(([group, digest]) => [numberOf(group!), textOf(digest!)]));
  }

  /** Runs a statement in a transaction of its own, also if it only reads. */
  async #commitRows(text: string, values: unknown[]): Promise<Row[]> {
    try {
      return await this.#pool.use(connection => connection.commit({ text, values }));
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || sqlStateOf(error.cause) !== INSUFFICIENT_PRIVILEGE)
        throw error;
      const { fault, cause } = error;
      throw new StoreRejected(`the store at ${shownPostgresAddress(this.#settings.address)}: ${fault}`, {
        advice: `only the owner may create and revoke tokens, so name its role in ${DATABASE_OPTION} of such a command`,
        cause,
      });
    }
  }
}
