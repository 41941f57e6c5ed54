import { ID_MIN } from '../../contract/limits.ts';
import type { PlantReader, PlantRevision, StoreSize } from '../plant-store.ts';
import { REVISION_COLUMNS, revisionOf } from '../rows.ts';
import type { Connection, TextRow } from './connection.ts';
import { unavailable } from './failure.ts';
import { HostSearch } from './host-search.ts';
import { PAGE_ROWS, PAGE_TEXT_BYTES } from './limits.ts';
import type { PostgresAddress } from './postgres-url.ts';
import { checkSchema } from './schema.ts';
import { allTokens } from './token-table.ts';

export async function openPostgresReader(address: PostgresAddress): Promise<PlantReader> {
  const search = new HostSearch(address);
  const [connection] = await search.open(async opened => {
    await opened.allowLongStatements();
    await checkSchema(opened);
  });
  return {
    revisionsOf: async id => {
      const text = `SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = $1 ORDER BY revision`;
      return (await orUnavailable(connection.run({ text, values: [id] }))).map(revisionOf);
    },
    revisions: from => allRevisions(search, from),
    size: () => size(connection),
    tokens: () => orUnavailable(allTokens(connection)),
    identity: () => identity(connection),
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

/**
 * Selects the page that follows the key in $1 and $2, in the order of the primary key. The text of
 * a page is limited: a name may be as large as a request, and thousands of them do not fit into
 * memory.
 */
const PAGE = `
  SELECT ${REVISION_COLUMNS} FROM (
    SELECT ${REVISION_COLUMNS},
      sum(octet_length(name) + coalesce(octet_length(tag), 0)) OVER (ORDER BY id, revision ROWS UNBOUNDED PRECEDING)
        - octet_length(name) - coalesce(octet_length(tag), 0) AS bytes_before
    FROM (
      SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE (id, revision) > ($1, $2)
      ORDER BY id, revision LIMIT ${PAGE_ROWS}
    ) AS following
  ) AS measured
  WHERE bytes_before < ${PAGE_TEXT_BYTES}
  ORDER BY id, revision`;

/**
 * Reads pages from one snapshot (https://www.postgresql.org/docs/current/transaction-iso.html,
 * section 13.2.2). The server prepares the next page while the caller uses this one.
 */
async function* allRevisions(search: HostSearch, from = ID_MIN): AsyncIterable<PlantRevision> {
  const connection = await orUnavailable(search.connect());
  const pageAfter = (id: unknown, revision: unknown): Promise<TextRow[]> => {
    const page = connection.run({ name: 'page', text: PAGE, values: [id, revision] });
    // The caller awaits it later, or never.
    page.catch(() => {});
    return page;
  };
  try {
    await connection.allowLongStatements();
    await connection.run({ text: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' });
    let next = pageAfter(from, 0);
    for (;;) {
      const page = await next;
      const last = page.at(-1);
      if (last === undefined) return;
      next = pageAfter(last[0], last[1]);
      for (const row of page) yield revisionOf(row);
    }
  } catch (error) {
    throw unavailable(error);
  } finally {
    // Also when the caller stops early. The end of the connection ends the transaction.
    await connection.close();
  }
}

/** Each plant has one revision 1. */
async function size(connection: Connection): Promise<StoreSize> {
  const sizes = `SELECT ${connection.isCitus ? 'citus' : 'pg'}_total_relation_size('plant_revision')`;
  const counts = 'SELECT count(*) FILTER (WHERE revision = 1), count(*) FROM plant_revision';
  const [bytes] = await connection.run({ text: sizes }).catch(() => []);
  const [count] = await orUnavailable(connection.run({ text: counts }));
  return { plants: Number(count![0]), revisions: Number(count![1]), bytes: bytes && Number(bytes[0]) };
}

/** Identifies a table of one run of a server. Undefined for engines that lack these functions. */
async function identity(connection: Connection): Promise<string | undefined> {
  const text = `SELECT pg_postmaster_start_time()::text, current_database()::text, 'plant_revision'::regclass::oid::text`;
  const [row] = await connection.run({ text }).catch(() => []);
  return row && `table ${row.join(' ')}`;
}

function orUnavailable<T>(work: Promise<T>): Promise<T> {
  return work.catch(error => {
    throw unavailable(error);
  });
}
