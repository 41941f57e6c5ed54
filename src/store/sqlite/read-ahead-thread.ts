import { parentPort, workerData } from 'node:worker_threads';
import { type PlantRevision, StoreRejected } from '../plant-store.ts';
import { packRevisions, type RevisionBatch } from './batch.ts';
import { openForReading } from './database.ts';
import { READ_BATCH_ROWS, READ_BATCH_TEXT_LENGTH } from './limits.ts';
import { revisionsIn } from './queries.ts';

/** The arguments of {@link openForReading}. */
const source = workerData as [path: string, isImmutable: boolean];
let revisions: Iterator<PlantRevision> | undefined;

// Each message requests a batch.
parentPort!.on('message', () => parentPort!.postMessage(nextBatch()));

function nextBatch(): RevisionBatch {
  const rows: PlantRevision[] = [];
  let textLength = 0;
  try {
    revisions ??= revisionsIn(openForReading(...source));
    while (rows.length < READ_BATCH_ROWS && textLength < READ_BATCH_TEXT_LENGTH) {
      const { done, value } = revisions.next();
      if (done) return packRevisions(rows, 'complete');
      rows.push(value);
      textLength += value.plant.name.length + (value.plant.tag?.length ?? 0);
    }
    return packRevisions(rows);
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number };
    return packRevisions(rows, { message, errcode, isRejection: error instanceof StoreRejected });
  }
}
