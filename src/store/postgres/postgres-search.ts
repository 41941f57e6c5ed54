import { revisionsOf, searchPage } from '../plant-search.ts';
import type { PlantSearch } from '../plant-store.ts';
import type { Query } from '../revision-rows.ts';
import { rejectWorker } from './citus-workers.ts';
import type { Connection } from './connection.ts';
import { ConnectionPool } from './connection-pool.ts';
import { HostSearch } from './host-search.ts';
import { bytes } from './postgres-reader.ts';
import type { PostgresAddress } from './postgres-url.ts';

/** Two, so that one search does not wait for another. */
const CONNECTIONS = 2;
/** On Citus, smaller slices take as long. In a larger one, each row may be a disk read. */
const SLICE_ROWS = { min: 2_048, max: 2_048 };

/** Searches a store on connections of its own, which are opened on use. They can only read. */
export function openPostgresSearch(address: PostgresAddress): PlantSearch {
  const pool = new ConnectionPool(new HostSearch(address, prepareSearch), CONNECTIONS);
  const query: Query = (text, values) => pool.use(connection => connection.run({ text, values }));
  return {
    page: (...args) => searchPage(query, ...args, SLICE_ROWS),
    revisionsOf: (...args) => revisionsOf(query, ...args),
    bytes: () => pool.use(bytes),
    [Symbol.asyncDispose]: () => pool.close(),
  };
}

async function prepareSearch(connection: Connection): Promise<void> {
  await rejectWorker(connection);
  await connection.run({ text: 'SET default_transaction_read_only = on' });
}
