import type { PlantRevision } from '../../../core/commit/plant-revision.ts';
import { REVISION_COLUMNS } from '../../tables/revision-rows.ts';
import type { TextRow } from '../connection.ts';
import { ConnectionLost, KEY_EXISTS, sqlStateOf } from '../postgres-errors.ts';
import type { StoreConnection } from '../topology/topology.ts';
import type { CopyChoice } from './copy-choice.ts';
import { revisionInsert } from './revision-statements.ts';

/** The name of a prepared statement that ends with an error when the table may change rows. */
const GUARD = 'guard_of_copy';
/** Connections with this statement. To parse it for each batch would cost as much as the COPY. */
const guardedConnections = new WeakSet<StoreConnection>();

const COPY = `COPY plant_revision (${REVISION_COLUMNS}) FROM STDIN; EXECUTE ${GUARD}`;
const ESCAPES: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * Stores those of the revisions that do not exist, in one transaction.
 *
 * @param revisions at most one of each id
 * @param copyChoice undefined: they are inserted
 * @returns their ids
 * @throws {ConnectionLost} also after a commit, if later ones would not be durable: another connection
 *   looks this one up
 */
export async function storeRevisions(
  connection: StoreConnection,
  revisions: readonly PlantRevision[],
  copyChoice: CopyChoice | undefined,
): Promise<ReadonlySet<bigint>> {
  if (copyChoice?.next(revisions.length)) {
    try {
      rejectLostFlush(await copyRevisions(connection, revisions));
      return new Set(revisions.map(({ plant }) => plant.id));
    } catch (error) {
      if (sqlStateOf(error) !== KEY_EXISTS) throw error;
      copyChoice.onConflict();
    }
  }
  const rows = await connection.commit(revisionInsert(revisions, connection.topology));
  rejectLostFlush(rows);
  if (rows.length < revisions.length) copyChoice?.onConflict();
  return new Set(rows.map(([id]) => BigInt(id!)));
}

/**
 * Stores all revisions, or none of them if one exists.
 *
 * Several statements in one text are one transaction, also without BEGIN
 * (https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-MULTI-STATEMENT), and an
 * error ends it.
 * The guard comes last: COPY locks the table, so it cannot change between the guard and the commit.
 */
async function copyRevisions(
  connection: StoreConnection,
  revisions: readonly PlantRevision[],
): Promise<TextRow[]> {
  if (!guardedConnections.has(connection)) {
    await connection.run({ name: GUARD, text: connection.topology.copyGuardText });
    guardedConnections.add(connection);
  }
  return await connection.commit({ text: COPY, copyRows: revisions.map(copyLine).join('') });
}

/** A row in the text format of COPY (https://www.postgresql.org/docs/current/sql-copy.html). */
function copyLine({ plant, revision, recordedAt, recordedBy, checksum }: PlantRevision): string {
  const { id, name, tag } = plant;
  const tagField = tag === undefined ? '\\N' : escaped(tag);
  return `${id}\t${revision}\t${escaped(name)}\t${tagField}\t${recordedAt}\t${recordedBy}\t${checksum}\n`;
}

function escaped(text: string): string {
  return text.replace(/[\\\n\r\t]/g, character => ESCAPES[character]!);
}

/** @param rows whose second column is `on` if the connection had lost `synchronous_commit` */
function rejectLostFlush(rows: readonly TextRow[]): void {
  if (rows.some(([, flush]) => flush === 'on'))
    throw new ConnectionLost('synchronous_commit of the connection was lost; is there a pooler in between?');
}
