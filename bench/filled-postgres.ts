import { PostgresServer } from '../test/harness/postgres-server.ts';

/** Rows that are sorted and inserted together. */
const PASS_ROWS = 1_000_000;
/** What a load with random ids sends is 10^18 and up to so much more, see create-requests.lua. */
const ID_RANGE = 8_220_000_000_000_000_000n;

/** A PostgreSQL server whose database holds many plants under random ids; it is made when first asked for. */
export class FilledPostgres implements AsyncDisposable {
  readonly #rows: number;
  readonly #makeSchema: (url: string) => Promise<unknown>;
  #server: PostgresServer | undefined;
  #filledUrl = '';
  #copies = 0;

  /** @param makeSchema makes an empty store of a new database */
  constructor(rows: number, makeSchema: (url: string) => Promise<unknown>) {
    this.#rows = rows;
    this.#makeSchema = makeSchema;
  }

  /** Starts the server, and makes a copy of the database that holds the plants. */
  async startWithCopy(): Promise<{ server: PostgresServer; url: string }> {
    if (this.#server === undefined) await this.#fill();
    else await this.#server.startAgain();
    const server = this.#server!;
    const name = `copy_${++this.#copies}`;
    await server.query(`CREATE DATABASE ${name} TEMPLATE ${nameOf(this.#filledUrl)} STRATEGY file_copy`);
    // Not while it is measured.
    await server.query('CHECKPOINT');
    return { server, url: server.url(name) };
  }

  async dropCopyAndStop(url: string): Promise<void> {
    await this.#server!.query(`DROP DATABASE ${nameOf(url)} WITH (FORCE)`);
    await this.#server!.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
  }

  async #fill(): Promise<void> {
    console.error(`  storing ${this.#rows} plants in PostgreSQL`);
    const server = await PostgresServer.start();
    this.#server = server;
    this.#filledUrl = await server.createDatabase();
    await this.#makeSchema(this.#filledUrl);
    const database = nameOf(this.#filledUrl);
    for (let filled = 0; filled < this.#rows; filled += PASS_ROWS) {
      const last = Math.min(filled + PASS_ROWS, this.#rows);
      await server.query(insertPass(filled + 1, last), database);
    }
    await server.query('VACUUM (ANALYZE) plant_revision', database);
  }
}

/** Each pass touches every page of the index, so the pages are as full as those of a table that grew at random. */
function insertPass(first: number, last: number): string {
  return `
    INSERT INTO plant_revision (id, revision, name, tag, recorded_at, recorded_by)
    SELECT id, 1, 'Monstera deliciosa ' || right(id::text, 16), 'houseplant',
      floor(extract(epoch FROM now()) * 1000), (SELECT min(token.id) FROM token)
    FROM (
      SELECT ${10n ** 18n} + (hashint8extended(number, 1) & ${2n ** 63n - 1n}) % ${ID_RANGE} AS id
      FROM generate_series(${first}::bigint, ${last}::bigint) AS number
      ORDER BY 1
    ) AS pass
    ON CONFLICT DO NOTHING`;
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}
