import { POSTGRES_COPY_WAIT_MS } from '../../contract/limits.ts';
import { type CopyTarget, type PlantRevision, StoreRefused, type TokenCopy } from '../plant-store.ts';
import type { Connection } from './connection.ts';
import { kindOf, openFailure, unavailable } from './failure.ts';
import { HostSearch } from './host-search.ts';
import type { PostgresAddress } from './postgres-url.ts';
import { type NewRevision, REVISION_COLUMNS, revisionInsert, rowOf } from './revision-insert.ts';
import { applySchemaSteps, checkCopyRights } from './schema.ts';
import { putToken } from './token-table.ts';

/** What fails for a while, as a serialization failure does, is tried so many times. */
const ATTEMPTS_MAX = 5;

/** A store in PostgreSQL on its way to become a copy, over one connection. When that is cut, the copy is begun again. */
export class PostgresTarget implements CopyTarget {
  readonly #connection: Connection;

  private constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Opens the store and makes its schema when there is none.
   *
   * @throws {StoreRefused} when no host can be had now, or the database is not one that can be used
   */
  static async open(address: PostgresAddress): Promise<PostgresTarget> {
    let connection: Connection | undefined;
    try {
      connection = await new HostSearch(address).connect();
      await applySchemaSteps(connection);
      await checkCopyRights(connection);
      await connection.allow(POSTGRES_COPY_WAIT_MS);
      return new PostgresTarget(connection);
    } catch (error) {
      connection?.destroy();
      throw openFailure(error, address);
    }
  }

  async insertRevisions(revisions: readonly PlantRevision[]): Promise<void> {
    const statement = revisionInsert(revisions.map(newRevision));
    await this.#inTransaction(async () => {
      const inserted = await this.#connection.run(statement, POSTGRES_COPY_WAIT_MS);
      if (inserted.length < revisions.length) await this.#checkStored(revisions);
    });
  }

  async putTokens(tokens: readonly TokenCopy[]): Promise<void> {
    await this.#inTransaction(async () => {
      for (const copy of tokens) {
        if (!(await putToken(this.#connection, copy))) {
          throw changedMeanwhile(`token ${JSON.stringify(copy.token.label)}`);
        }
      }
    });
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  /**
   * Some were there already. A copy that was killed leaves its last statement behind, which may end after the next copy
   * has read what is there; nothing is amiss as long as they are the same.
   */
  async #checkStored(revisions: readonly PlantRevision[]): Promise<void> {
    const rows = await this.#connection.run(
      {
        text: `SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = ANY($1::bigint[])`,
        values: [[...new Set(revisions.map(({ plant }) => plant.id))]],
      },
      POSTGRES_COPY_WAIT_MS,
    );
    const stored = new Set(rows.map(row => JSON.stringify(row)));
    for (const each of revisions.map(newRevision)) {
      if (stored.has(JSON.stringify(rowOf(each)))) continue;
      throw changedMeanwhile(`revision ${each.revision} of plant ${each.id}`);
    }
  }

  async #inTransaction(work: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#connection.run({ text: 'BEGIN' });
        await work();
        await this.#connection.commit({ text: 'COMMIT' }, POSTGRES_COPY_WAIT_MS);
        return;
      } catch (error) {
        if (kindOf(error) !== 'connectionLost') await this.#connection.run({ text: 'ROLLBACK' });
        if (error instanceof StoreRefused) throw error;
        if (kindOf(error) !== 'retry' || attempt === ATTEMPTS_MAX) throw unavailable(error);
      }
    }
  }
}

function newRevision({ plant, revision, recordedAt, recordedBy }: PlantRevision): NewRevision {
  const { id, name, tag = null } = plant;
  return { id, revision, name, tag, recordedAt, recordedBy };
}

function changedMeanwhile(what: string): StoreRefused {
  return new StoreRefused(
    `something else wrote ${what} of the target meanwhile; stop the services on it, and copy again`,
  );
}
