import type { PlantRevision } from '../../../core/commit/plant-revision.ts';
import { StoreDamaged } from '../../../core/commit/store-errors.ts';
import { ID_MIN } from '../../../core/contract/limits.ts';
import type { PlantReader } from '../../plant-reader.ts';
import { countThatFits, TEXT_BYTES } from '../../search/page-size.ts';
import { knownDamage } from '../../tables/damage-record.ts';
import { countRows, newestTime, REVISION_COLUMNS, revisionOf } from '../../tables/revision-rows.ts';
import type { Query } from '../../tables/table-access.ts';
import { allTokens } from '../../tables/token-rows.ts';
import { latestRevisions } from '../batch/revision-statements.ts';
import type { TextRow } from '../connection.ts';
import { HostSearch } from '../connections/host-search.ts';
import { INSUFFICIENT_PRIVILEGE, orStoreFailure, sqlStateOf, storeFailure } from '../postgres-errors.ts';
import type { PostgresAddress } from '../postgres-url.ts';
import { rejectUnreadable, schemaFaults } from '../schema/schema.ts';
import type { StoreConnection } from '../topology/topology.ts';
import { untilVisible } from './unfinished-inserts.ts';

export async function openPostgresReader(address: PostgresAddress): Promise<PlantReader> {
  const search = new HostSearch(address, opened => opened.topology.prepare(opened, 'read'));
  const { connection } = await search.open(async opened => {
    await opened.setStatementTimeout();
    await rejectUnreadable(opened);
  });
  const query: Query = (text, values) => orStoreFailure(() => connection.run({ text, values }));
  return {
    revisions: from => revisionsFrom(search, from, SNAPSHOT),
    revisionsInSlices: from => revisionsFrom(search, from),
    latestRevisions: ids => latestInSlices(connection, ids),
    size: async () => ({
      ...(await countRows(query)),
      bytes: await bytes(connection),
    }),
    tokens: () => allTokens(query),
    knownDamage: () => knownDamage(query),
    newestTime: until => newestTime(query, until),
    untilVisible: time => orStoreFailure(() => untilVisible(connection, time)),
    structureFaults: () => structureFaults(connection),
    identity: () => identity(connection),
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

/** https://www.postgresql.org/docs/current/transaction-iso.html, section 13.2.2 */
const SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

/** Rows of one page. It has fewer if their text is long. */
const PAGE_ROWS = 10_000;
/** Timeout of the check of the structure, which reads whole tables. */
const STRUCTURE_TIMEOUT_MS = 86_400_000;

/** Ids of one lookup. The texts of so many plants fit into memory. */
const LOOKUP_IDS = 100;

/** The server has no extension amcheck, or the user may not use it. */
const NOT_CHECKED = ['42883', INSUFFICIENT_PRIVILEGE];

/** The keys that follow the key in $1 and $2, and the bytes of text of each row. */
const KEYS = `
  SELECT id, revision, ${TEXT_BYTES} FROM plant_revision
  WHERE (id, revision) > ($1, $2) ORDER BY id, revision LIMIT ${PAGE_ROWS}`;
const PAGE = `
  SELECT ${REVISION_COLUMNS} FROM plant_revision
  WHERE (id, revision) > ($1, $2) AND (id, revision) <= ($3, $4) ORDER BY id, revision`;

/**
 * Reads the page that follows a key, in the order of the primary key. It first reads the keys and
 * the lengths of texts, because thousands of names, each as large as a request, do not fit into
 * memory. One statement for both would make each of several servers send the text of a full page.
 */
async function pageAfter(connection: StoreConnection, key: TextRow): Promise<TextRow[]> {
  const keys = await connection.run({ name: 'keys', text: KEYS, values: key });
  const last = keys[countThatFits(keys) - 1];
  if (last === undefined) return [];
  const page = await connection.run({ name: 'page', text: PAGE, values: [...key, ...last.slice(0, 2)] });
  // The index has the right keys. In a damaged row, the key may be smaller than in the index.
  if (page.length === 0 || !isBehind(page.at(-1)!, key)) throw new StoreDamaged(`wrong keys behind ${key}`);
  return page;
}

function isBehind([id, revision]: TextRow, [lastId, lastRevision]: TextRow): boolean {
  return BigInt(id!) > BigInt(lastId!) || (id === lastId && Number(revision) > Number(lastRevision));
}

/** Reads pages, one ahead of the caller. @param begin begins a transaction for all of them */
async function* revisionsFrom(
  search: HostSearch,
  from = ID_MIN,
  begin?: string,
): AsyncIterable<PlantRevision> {
  const connection = await orStoreFailure(() => search.connect());
  try {
    await connection.setStatementTimeout();
    if (begin !== undefined) await connection.run({ text: begin });
    // The rows must come in the order of the index, because the key of a damaged row may be wrong.
    await connection.run({
      text: 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = on',
    });
    let next = pageAfter(connection, [String(from), '0']);
    for (;;) {
      const page = await next;
      const last = page.at(-1);
      if (last === undefined) return;
      next = pageAfter(connection, last.slice(0, 2));
      // The caller may stop before this page is awaited.
      next.catch(() => {});
      for (const row of page) yield revisionOf(row);
    }
  } catch (error) {
    throw storeFailure(error);
  } finally {
    // The end of the connection ends the transaction, also when the caller stops early.
    await connection.close();
  }
}

async function latestInSlices(connection: StoreConnection, ids: readonly bigint[]): Promise<PlantRevision[]> {
  const found: PlantRevision[] = [];
  for (let start = 0; start < ids.length; start += LOOKUP_IDS) {
    const slice = ids.slice(start, start + LOOKUP_IDS);
    found.push(...(await orStoreFailure(() => latestRevisions(connection, slice))));
  }
  return found;
}

export async function bytes(connection: StoreConnection): Promise<number | undefined> {
  const [row] = await connection.run({ text: `SELECT ${connection.topology.tableSize}` }).catch(() => []);
  return row && Number(row[0]);
}

/**
 * https://www.postgresql.org/docs/current/amcheck.html, where `true` also finds rows that an index
 * lacks. The check of the schema names all other missing indexes, since those are unique.
 */
const STRUCTURE = [
  `SELECT 'the index token_copy is missing' WHERE to_regclass('token_copy') IS NULL`,
  `SELECT bt_index_check(indexrelid, true)::text FROM pg_index
    WHERE indrelid IN ('plant_revision'::regclass, 'token'::regclass)`,
  ...['plant_revision', 'token'].map(
    table => `SELECT format('${table}, block %s: %s', blkno, msg) FROM verify_heapam('${table}') LIMIT 100`,
  ),
];

async function structureFaults(connection: StoreConnection): Promise<string[] | undefined> {
  const faults = await orStoreFailure(() => schemaFaults(connection));
  if (faults.length > 0) return faults;
  // This server may have none of the rows.
  if (connection.topology.spansServers) return undefined;
  await orStoreFailure(() => connection.setStatementTimeout(STRUCTURE_TIMEOUT_MS));
  for (const text of STRUCTURE) {
    try {
      const rows = await connection.run({ text });
      // The check of an intact index returns an empty text.
      faults.push(...rows.flatMap(([fault]) => fault || []));
    } catch (error) {
      if (NOT_CHECKED.includes(sqlStateOf(error) ?? '')) return undefined;
      const failure = storeFailure(error);
      if (!(failure instanceof StoreDamaged)) throw failure;
      faults.push(failure.message);
    }
  }
  return faults;
}

/** Identifies a table of one run of a server. Undefined for engines that lack these functions. */
async function identity(connection: StoreConnection): Promise<string | undefined> {
  const text = `SELECT pg_postmaster_start_time()::text, current_database()::text, 'plant_revision'::regclass::oid::text`;
  const [row] = await connection.run({ text }).catch(() => []);
  return row && `table ${row.join(' ')}`;
}
