import { on } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type PlantRevision, StoreRejected } from '../plant-store.ts';
import { type RevisionBatch, unpackRevisions } from './batch.ts';
import { unavailable } from './database.ts';
import { READ_BATCHES_AHEAD } from './limits.ts';

/**
 * Reads every revision on a thread of its own, a few batches ahead, while the caller checks them.
 *
 * @param source the arguments of `openForReading`
 */
export async function* readAhead(
  ...source: [path: string, isImmutable: boolean]
): AsyncIterable<PlantRevision[]> {
  const worker = new Worker(new URL('./read-ahead-thread.ts', import.meta.url), { workerData: source });
  try {
    for (let ahead = 0; ahead < READ_BATCHES_AHEAD; ahead++) worker.postMessage('next');
    for await (const [message] of on(worker, 'message', { close: ['exit'] })) {
      worker.postMessage('next');
      const batch = message as RevisionBatch;
      yield unpackRevisions(batch);
      if (batch.end === 'complete') return;
      if (batch.end?.isRejection) throw new StoreRejected(batch.end.message);
      if (batch.end) throw Object.assign(new Error(batch.end.message), { errcode: batch.end.errcode });
    }
    throw new Error('the reading thread ended');
  } catch (error) {
    throw unavailable(error);
  } finally {
    await worker.terminate();
  }
}
