import { type PlantSearch, revisionsOf, searchPage } from '../plant-search.ts';
import type { Query } from '../tables/table-access.ts';
import type { Connection } from './connection.ts';
import { ConnectionPool } from './connection-pool.ts';
import { HostSearch } from './host-search.ts';
import { bytes } from './postgres-reader.ts';
import type { PostgresAddress } from './postgres-url.ts';
import type { StoreConnection } from './table-layout.ts';

/** Two, so that one search does not wait for another. */
const CONNECTIONS = 2;
/** From several servers, a smaller slice takes as long. A larger slice may take a disk read for each row. */
const SLICE_ROWS = { min: 2_048, max: 2_048 };

/** Searches a store on connections of its own, which are opened on use. They can only read. */
export function openPostgresSearch(address: PostgresAddress): PlantSearch {
  const pool = new ConnectionPool(new HostSearch(address, prepareSearch), CONNECTIONS);
  const query: Query = (text, values) => pool.use(connection => connection.run({ text, values }));
  return {
    page: (...args) => searchPage({ query, nameContains }, ...args, SLICE_ROWS),
    revisionsOf: (...args) => revisionsOf(query, ...args),
    bytes: () => pool.use(bytes),
    revisions: () => pool.use(estimatedRevisions),
    [Symbol.asyncDispose]: () => pool.close(),
  };
}

/** The SQL for what `folded` does. Case beyond ASCII follows the locale of the database. */
const foldedSql = (text: string): string =>
  String.raw`lower(regexp_replace(normalize(${text}, NFD), '[\u0300-\u036f]', '', 'g'))`;

const nameContains = (parameter: string): string =>
  `strpos(${foldedSql('name')}, ${foldedSql(`CAST(${parameter} AS text)`)}) > 0`;

/** The estimate of the last ANALYZE or VACUUM. A server without the rows has none. */
async function estimatedRevisions(connection: Connection): Promise<number | undefined> {
  const text = `SELECT reltuples::bigint FROM pg_class WHERE oid = 'plant_revision'::regclass`;
  const [row] = await connection.run({ text });
  return Number(row![0]) > 0 ? Number(row![0]) : undefined;
}

async function prepareSearch(connection: StoreConnection): Promise<void> {
  await connection.layout.prepare(connection, 'read');
  await connection.run({ text: 'SET default_transaction_read_only = on' });
}
