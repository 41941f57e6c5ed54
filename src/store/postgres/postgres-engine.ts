import type { NewStoredToken, StoredToken } from '../../contract/stored-token.ts';
import {
  type EngineFigures,
  type PlantWrite,
  type RepeatedIdRule,
  type StorageEngine,
  StoreRefused,
  type WriteResult,
} from '../plant-store.ts';
import { BatchCommit, confirmEverythingBefore } from './batch-commit.ts';
import type { Connection } from './connection.ts';
import { ConnectionPool } from './connection-pool.ts';
import { durabilityWarnings } from './durability-warnings.ts';
import { INSUFFICIENT_PRIVILEGE, openFailure, sqlStateOf } from './failure.ts';
import { HostSearch } from './host-search.ts';
import { type PostgresAddress, shownPostgresAddress } from './postgres-url.ts';
import { applySchemaSteps, checkServiceRights } from './schema.ts';
import * as tokenTable from './token-table.ts';

/** What a PostgreSQL store is opened with. */
export interface PostgresSettings {
  address: PostgresAddress;
  repeatedIdRule: RepeatedIdRule;
  /** How many batches are written side by side, each on a connection of its own. */
  connections: number;
}

/** A store in PostgreSQL, or in an engine that speaks it, which any number of services may share. */
export class PostgresEngine implements StorageEngine {
  readonly commitsInFlightMax: number;
  readonly isNew: boolean;
  readonly #search: HostSearch;
  readonly #pool: ConnectionPool;
  readonly #address: PostgresAddress;
  readonly #repeatedIdRule: RepeatedIdRule;

  private constructor(settings: PostgresSettings, search: HostSearch, isNew: boolean) {
    const { address, repeatedIdRule, connections } = settings;
    this.isNew = isNew;
    this.commitsInFlightMax = connections;
    this.#address = address;
    this.#repeatedIdRule = repeatedIdRule;
    this.#search = search;
    // One more, so that tokens and readiness never wait behind plants.
    this.#pool = new ConnectionPool(search, connections + 1);
  }

  /**
   * Opens the store and brings its schema up to date.
   *
   * @throws {StoreRefused} when no host can be had now, or the database is not one that can be used
   */
  static async open(settings: PostgresSettings): Promise<PostgresEngine> {
    const search = new HostSearch(settings.address);
    let connection: Connection | undefined;
    let isNew: boolean;
    try {
      connection = await search.connect();
      isNew = await applySchemaSteps(connection);
      await checkServiceRights(connection);
    } catch (error) {
      connection?.destroy();
      throw openFailure(error, settings.address);
    }
    const engine = new PostgresEngine(settings, search, isNew);
    engine.#pool.add(connection);
    return engine;
  }

  commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const batch = new BatchCommit(writes, this.#repeatedIdRule);
    return this.#pool.use(connection => batch.run(connection));
  }

  check(): Promise<readonly string[]> {
    return this.#pool.use(async connection => {
      // A primary whose synchronous standby is away answers questions, and confirms no plant.
      await confirmEverythingBefore(connection);
      return await durabilityWarnings(connection, () => this.#search.connect());
    });
  }

  async figures(): Promise<EngineFigures> {
    return { connections: this.#pool.connections };
  }

  hasPlants(): Promise<boolean> {
    return this.#pool.use(async connection => {
      const rows = await connection.run({ text: 'SELECT 1 FROM plant_revision LIMIT 1' });
      return rows.length > 0;
    });
  }

  async createToken(token: NewStoredToken): Promise<StoredToken | undefined> {
    return await this.#explained(connection => tokenTable.createToken(connection, token));
  }

  tokensChangedSince(changeNumber: number): Promise<StoredToken[]> {
    return this.#pool.use(connection => tokenTable.tokensChangedSince(connection, changeNumber));
  }

  tokensFingerprint(): Promise<string> {
    return this.#pool.use(tokenTable.tokensFingerprint);
  }

  async revokeToken(label: string, revokedAt: number): Promise<StoredToken | undefined> {
    return await this.#explained(connection => tokenTable.revokeToken(connection, label, revokedAt));
  }

  recordTokenUse(tokenIds: number[], day: string): Promise<void> {
    return this.#pool.use(connection => tokenTable.recordTokenUse(connection, tokenIds, day));
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /** The command line is told that it lacks a right; the service keeps such things for its log. */
  async #explained<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      return await this.#pool.use(work);
    } catch (error) {
      const { cause } = error as Error;
      if (sqlStateOf(cause ?? error) !== INSUFFICIENT_PRIVILEGE) throw error;
      throw new StoreRefused(
        `the store at ${shownPostgresAddress(this.#address)}: only the owner of the store may make and revoke tokens; name its role in --database`,
        { cause },
      );
    }
  }
}
