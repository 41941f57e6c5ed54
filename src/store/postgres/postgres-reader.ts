import { POSTGRES_PAGE_ROWS, POSTGRES_READ_WAIT_MS } from '../../contract/limits.ts';
import type { PlantReader, PlantRevision } from '../plant-store.ts';
import type { Connection, TextRow } from './connection.ts';
import { openFailure, unavailable } from './failure.ts';
import { HostSearch } from './host-search.ts';
import type { PostgresAddress } from './postgres-url.ts';
import { checkSchema } from './schema.ts';
import { allTokens } from './token-table.ts';

const COLUMNS = 'id, revision, name, tag, recorded_at, recorded_by';

/**
 * Opens a PostgreSQL store for reading.
 *
 * @throws {StoreRefused} when there is no plant store at this address, or it cannot be reached
 */
export async function openPostgresReader(address: PostgresAddress): Promise<PlantReader> {
  const search = new HostSearch(address);
  const connect = async (): Promise<Connection> => {
    const connection = await search.connect();
    await connection.run({ text: `SET statement_timeout = ${POSTGRES_READ_WAIT_MS}` });
    return connection;
  };
  let connection: Connection | undefined;
  try {
    connection = await connect();
    await checkSchema(connection);
  } catch (error) {
    connection?.destroy();
    throw openFailure(error, address);
  }
  const questions = connection;
  return {
    revisionsOf: async id => {
      const rows = await read(questions, `WHERE id = $1 ORDER BY revision`, [id]);
      return rows.map(plantRevision);
    },
    revisions: () => allRevisions(connect),
    tokens: async () => await allTokens(questions),
    close: () => questions.close(),
  };
}

/**
 * Page by page in the order of the primary key, all of them from one snapshot
 * (https://www.postgresql.org/docs/current/transaction-iso.html, section 13.2.2).
 */
async function* allRevisions(connect: () => Promise<Connection>): AsyncIterable<PlantRevision> {
  const connection = await connect().catch(error => {
    throw unavailable(error);
  });
  try {
    await connection.run({ text: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' });
    let where = '';
    let after: unknown[] = [];
    for (;;) {
      const page = await read(
        connection,
        `${where} ORDER BY id, revision LIMIT ${POSTGRES_PAGE_ROWS}`,
        after,
      );
      for (const row of page) yield plantRevision(row);
      if (page.length < POSTGRES_PAGE_ROWS) return;
      const [id, revision] = page.at(-1)!;
      where = 'WHERE (id, revision) > ($1, $2)';
      after = [id, revision];
    }
  } finally {
    // Also when whoever reads has seen enough; the snapshot goes with the connection.
    await connection.close();
  }
}

async function read(connection: Connection, rest: string, values: unknown[]): Promise<TextRow[]> {
  try {
    const text = `SELECT ${COLUMNS} FROM plant_revision ${rest}`;
    return await connection.run({ text, values }, POSTGRES_READ_WAIT_MS);
  } catch (error) {
    throw unavailable(error);
  }
}

function plantRevision([id, revision, name, tag, recordedAt, recordedBy]: TextRow): PlantRevision {
  return {
    plant: tag === null ? { id: BigInt(id!), name: name! } : { id: BigInt(id!), name: name!, tag: tag! },
    revision: Number(revision),
    recordedAt: Number(recordedAt),
    recordedBy: Number(recordedBy),
  };
}
