import { StoreRejected } from '../plant-store.ts';
import { Connection } from './connection.ts';

/** A setting that only the marked process of the server has. */
const MARK = 'plant_store.connection';

/**
 * Opens a connection as {@link Connection.open} does, but not through a pooler that gives it another
 * server process for each transaction. Its settings would be lost, and commits might not be flushed.
 * A pooler that keeps the process for the whole connection does no harm.
 *
 * @throws {StoreRejected} also when there is such a pooler
 */
export async function openWithoutPooler(...target: Parameters<typeof Connection.open>): Promise<Connection> {
  const connection = await Connection.open(...target);
  if (connection.isDirect) return connection;
  let second: Connection | undefined;
  try {
    second = await Connection.open(...target);
    await connection.run({ text: `SET ${MARK} = 'yes'` });
    // A pooler that rotates may come back to the same process once.
    const [other, own, again] = [await hasMark(second), await hasMark(connection), await hasMark(connection)];
    if (!other && own && again) return connection;
    throw new StoreRejected(
      'a pooler in transaction mode, such as PgBouncer, is between this program and PostgreSQL, so confirmed plants could be lost; name the server itself, or set pool_mode = session',
    );
  } catch (error) {
    connection.destroy();
    throw error;
  } finally {
    await second?.close();
  }
}

async function hasMark(connection: Connection): Promise<boolean> {
  const [row] = await connection.run({ text: `SELECT current_setting('${MARK}', true) = 'yes'` });
  return row![0] === 't';
}
