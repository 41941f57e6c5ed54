import type { DatabaseSync } from 'node:sqlite';
import type { NewStoredToken, StoredToken } from '../../contract/stored-token.ts';
import type { RepeatedIdRule } from '../plant-store.ts';
import type { Batch, BatchResults } from './batch.ts';
import { openForWriting } from './database.ts';
import { PlantTable } from './plant-table.ts';
import * as tokenTable from './token-table.ts';

/** What a SQLite store is opened with. */
export interface SqliteSettings {
  /** Of the database file. */
  path: string;
  repeatedIdRule: RepeatedIdRule;
}

interface OpenDatabase {
  database: DatabaseSync;
  plants: PlantTable;
}

/**
 * A SQLite store as the writer thread holds it: one connection, one operation at a time.
 *
 * After any failure the connection is given up, and the next operation opens the file anew. What SQLite or the
 * kernel still has in memory after a failed write or flush is not to be trusted; the file is, because a commit
 * that failed was never published in the write-ahead log and its place there is written again by the next one.
 */
export class SqliteStore {
  readonly #settings: SqliteSettings;
  #open: OpenDatabase | undefined;

  constructor(settings: SqliteSettings) {
    this.#settings = settings;
  }

  check(): void {
    this.#run(({ database }) => database.prepare('SELECT count(*) FROM sqlite_schema').get());
  }

  commit(batch: Batch): BatchResults {
    return this.#run(({ plants }) => plants.commit(batch));
  }

  createToken(token: NewStoredToken): StoredToken | undefined {
    return this.#run(({ database }) => tokenTable.createToken(database, token));
  }

  tokensChangedSince(changeNumber: number): StoredToken[] {
    return this.#run(({ database }) => tokenTable.tokensChangedSince(database, changeNumber));
  }

  revokeToken(label: string, revokedAt: number): StoredToken | undefined {
    return this.#run(({ database }) => tokenTable.revokeToken(database, label, revokedAt));
  }

  recordTokenUse(tokenIds: number[], day: string): void {
    this.#run(({ database }) => tokenTable.recordTokenUse(database, tokenIds, day));
  }

  close(): void {
    this.#open?.database.close();
    this.#open = undefined;
  }

  #run<Result>(operation: (open: OpenDatabase) => Result): Result {
    try {
      this.#open ??= this.#openDatabase();
      return operation(this.#open);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  #openDatabase(): OpenDatabase {
    const database = openForWriting(this.#settings.path);
    return { database, plants: new PlantTable(database, this.#settings.repeatedIdRule) };
  }
}
