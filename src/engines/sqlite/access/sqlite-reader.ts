import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PlantRevision } from '../../../core/commit/plant-revision.ts';
import { StoreDamaged } from '../../../core/commit/store-errors.ts';
import type { PlantReader } from '../../plant-reader.ts';
import { knownDamage } from '../../tables/damage-record.ts';
import { countRows, newestTime } from '../../tables/revision-rows.ts';
import type { Query } from '../../tables/table-access.ts';
import { allTokens } from '../../tables/token-rows.ts';
import { queryRows } from '../queries.ts';
import { schemaFaults } from '../schema.ts';
import { orStoreFailure, storeFailure } from '../sqlite-errors.ts';
import { openForReading } from './reading-database.ts';
import { latestRevisions, revisionsIn, revisionsInSlices } from './revision-reading.ts';

/**
 * The writer commits one batch after the other, so only the next batch can have the same time as a
 * visible one. It appears after its flush, which rarely takes longer than this.
 */
const FLUSH_MS = 3_000;

export const STORE_BYTES = 'SELECT page_count * page_size FROM pragma_page_count, pragma_page_size';

export function openSqliteReader(path: string): PlantReader {
  const opened = openForReading(path);
  const { database, rejectChange } = opened;
  const read = <T>(work: () => T): T =>
    orStoreFailure(() => {
      try {
        return work();
      } finally {
        rejectChange();
      }
    });
  const query: Query = async (text, values) => read(() => queryRows(database, text, values));
  return {
    revisions: from => readEach(revisionsIn(database, from), rejectChange),
    revisionsInSlices: from => readEach(revisionsInSlices(database, from), rejectChange),
    latestRevisions: async ids => read(() => latestRevisions(database, ids)),
    size: async () => ({
      ...(await countRows(query)),
      bytes: Number((await query(STORE_BYTES, []))[0]![0]),
    }),
    tokens: () => allTokens(query),
    knownDamage: () => knownDamage(query),
    newestTime: until => newestTime(query, until),
    untilVisible: async time => void (await sleep(Math.max(0, time + FLUSH_MS - Date.now()))),
    structureFaults: async () => read(() => [...schemaFaults(database), ...structureFaults(database)]),
    identity: async () => {
      const { dev, ino } = statSync(path, { bigint: true });
      return `file ${dev}:${ino}`;
    },
    [Symbol.asyncDispose]: async () => opened[Symbol.dispose](),
  };
}

/** https://sqlite.org/pragma.html#pragma_integrity_check, which reports the first 100 faults */
export function structureFaults(database: DatabaseSync): string[] {
  const faults: string[] = [];
  try {
    for (const row of database.prepare('PRAGMA integrity_check').iterate()) {
      faults.push(...String(row.integrity_check).split('\n'));
    }
  } catch (error) {
    // Some faults end the check itself with an error.
    const failure = storeFailure(error);
    if (!(failure instanceof StoreDamaged)) throw failure;
    faults.push(failure.message);
  }
  return faults.filter(fault => fault !== 'ok' && fault !== '*** in database main ***');
}

async function* readEach(
  revisions: Iterable<PlantRevision>,
  rejectChange: () => void,
): AsyncIterable<PlantRevision> {
  try {
    for (const revision of revisions) yield revision;
  } catch (error) {
    throw storeFailure(error);
  } finally {
    rejectChange();
  }
}
