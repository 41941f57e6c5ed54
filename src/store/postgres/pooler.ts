import { randomUUID } from 'node:crypto';
import { StoreRejected } from '../plant-store.ts';
import { Connection } from './connection.ts';

/** A setting by which a connection marks its process of the server. */
const MARK = 'plant_store.connection';

/**
 * Opens a connection as {@link Connection.open} does, but not through a pooler that gives it
 * another server process for each transaction. Its settings would be lost, and commits might not be
 * flushed. A pooler that keeps the process for the whole connection does no harm.
 *
 * @throws {StoreRejected} also when there is such a pooler
 */
export async function openWithoutPooler(...target: Parameters<typeof Connection.open>): Promise<Connection> {
  const connection = await Connection.open(...target);
  if (connection.isDirect) return connection;
  let second: Connection | undefined;
  try {
    second = await Connection.open(...target);
    // Not a constant: a pooler of sessions may hand on a process with the mark of another program.
    const mark = randomUUID();
    await connection.run({ text: `SET ${MARK} = '${mark}'` });
    // A pooler that rotates may come back to the same process once.
    const [other, own, again] = [await markOf(second), await markOf(connection), await markOf(connection)];
    if (other !== mark && own === mark && again === mark) return connection;
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

async function markOf(connection: Connection): Promise<unknown> {
  const [row] = await connection.run({ text: `SELECT current_setting('${MARK}', true)` });
  return row![0];
}
