import { type CopyTarget, type PlantRevision, StoreRefused, type TokenCopy } from '../plant-store.ts';
import type { Connection } from './connection.ts';
import { kindOf, unavailable } from './failure.ts';
import { HostSearch } from './host-search.ts';
import { COPY_ATTEMPTS_MAX } from './limits.ts';
import type { PostgresAddress } from './postgres-url.ts';
import { REVISION_COLUMNS, revisionInsert, rowOf } from './revision-table.ts';
import { applySchemaSteps, COPY_RIGHTS, checkRights } from './schema.ts';
import { putToken } from './token-table.ts';

/** A PostgreSQL store that becomes a copy, over one connection. When that is cut, the copy is started again. */
export class PostgresTarget implements CopyTarget {
  readonly #connection: Connection;

  private constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Opens the store and makes its schema when there is none.
   *
   * @throws {StoreRefused} when no host can be reached now, or the database cannot be used
   */
  static async open(address: PostgresAddress): Promise<PostgresTarget> {
    const [connection] = await new HostSearch(address).open(async opened => {
      await applySchemaSteps(opened);
      await checkRights(opened, COPY_RIGHTS);
      await opened.allowLongStatements();
    });
    return new PostgresTarget(connection);
  }

  async insertRevisions(revisions: readonly PlantRevision[]): Promise<void> {
    await this.#inTransaction(async () => {
      const inserted = await this.#connection.run(revisionInsert(revisions));
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

  close(): Promise<void> {
    return this.#connection.close();
  }

  /**
   * Some were there already. A copy that was killed leaves its last statement behind, which may be carried out after
   * the next copy has read what is there; nothing is wrong as long as they are the same.
   */
  async #checkStored(revisions: readonly PlantRevision[]): Promise<void> {
    const rows = await this.#connection.run({
      text: `SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = ANY($1::bigint[])`,
      values: [[...new Set(revisions.map(({ plant }) => plant.id))]],
    });
    const stored = new Set(rows.map(row => JSON.stringify(row)));
    const other = revisions.find(each => !stored.has(JSON.stringify(rowOf(each))));
    if (other !== undefined) throw changedMeanwhile(`revision ${other.revision} of plant ${other.plant.id}`);
  }

  async #inTransaction(work: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#connection.run({ text: 'BEGIN' });
        await work();
        await this.#connection.commit({ text: 'COMMIT' });
        return;
      } catch (error) {
        if (kindOf(error) !== 'connectionLost') await this.#connection.run({ text: 'ROLLBACK' });
        if (error instanceof StoreRefused) throw error;
        if (kindOf(error) !== 'retry' || attempt === COPY_ATTEMPTS_MAX) throw unavailable(error);
      }
    }
  }
}

function changedMeanwhile(what: string): StoreRefused {
  return new StoreRefused(
    `something else wrote ${what} of the target meanwhile; stop the services on it, and copy again`,
  );
}
