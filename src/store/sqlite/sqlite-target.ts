import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type CopyTarget, type PlantRevision, StoreRefused, type TokenCopy } from '../plant-store.ts';
import { openForWriting, unavailable } from './database.ts';
import { takeServeLock } from './serve-lock.ts';
import { putToken } from './token-table.ts';

/**
 * A SQLite store on its way to become a copy. It is written on this thread: nobody else waits here.
 */
export class SqliteTarget implements CopyTarget {
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #releaseLock: () => void;

  private constructor(database: DatabaseSync, releaseLock: () => void) {
    this.#database = database;
    this.#releaseLock = releaseLock;
    this.#insert = database.prepare(
      'INSERT INTO plant_revision VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
    );
  }

  /**
   * Opens the store, makes it when there is none, and keeps services away from it.
   *
   * @throws {StoreRefused} when it cannot be opened as it stands, or a service is running on it
   */
  static open(path: string): SqliteTarget {
    const releaseLock = takeServeLock(path);
    try {
      return new SqliteTarget(openForWriting(path), releaseLock);
    } catch (error) {
      releaseLock();
      throw error;
    }
  }

  async insertRevisions(revisions: readonly PlantRevision[]): Promise<void> {
    this.#inTransaction(() => {
      for (const { plant, revision, recordedAt, recordedBy } of revisions) {
        const { id, name, tag = null } = plant;
        if (this.#insert.run(id, revision, name, tag, recordedAt, recordedBy).changes === 1) continue;
        throw writtenByAnother(`revision ${revision} of plant ${id}`);
      }
    });
  }

  async putTokens(tokens: readonly TokenCopy[]): Promise<void> {
    this.#inTransaction(() => {
      for (const copy of tokens) {
        if (!putToken(this.#database, copy))
          throw writtenByAnother(`token ${JSON.stringify(copy.token.label)}`);
      }
    });
  }

  async close(): Promise<void> {
    this.#database.close();
    this.#releaseLock();
  }

  #inTransaction(write: () => void): void {
    try {
      this.#database.exec('BEGIN IMMEDIATE');
      write();
      this.#database.exec('COMMIT');
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error instanceof StoreRefused ? error : unavailable(error);
    }
  }
}

/** It was not there when the store was read, which is locked to services. */
function writtenByAnother(what: string): StoreRefused {
  return new StoreRefused(`something else wrote ${what} meanwhile; stop it, and copy again`);
}
