import { OUTCOMES } from '../../contract/plant.ts';
import type { PlantWrite, WriteResult } from '../plant-store.ts';

/**
 * A batch as it is sent to the writer thread, by columns. Structured clone then copies five arrays.
 * To copy an object with a bigint for each plant costs several times as much as the insert.
 */
export interface Batch {
  ids: BigInt64Array;
  names: string[];
  tags: (string | null)[];
  contentChecksums: BigInt64Array;
  recordedBy: Float64Array;
}

/** The results of a batch: for each plant an index into {@link RESULTS}, and its revision. */
export interface BatchResults {
  outcomes: Uint8Array;
  revisions: Uint32Array;
  /** Duration of the COMMIT, which includes the flush, in ms. */
  flushMs: number;
}

/** Plants with the last two results have no revision. */
export const RESULTS = [...OUTCOMES, 'idTaken', 'damaged'] as const;

export function packWrites(writes: readonly PlantWrite[]): Batch {
  const batch: Batch = {
    ids: new BigInt64Array(writes.length),
    names: new Array(writes.length),
    tags: new Array(writes.length),
    contentChecksums: new BigInt64Array(writes.length),
    recordedBy: new Float64Array(writes.length),
  };
  for (const [index, { plant, contentChecksum, recordedBy }] of writes.entries()) {
    batch.ids[index] = plant.id;
    batch.names[index] = plant.name;
    batch.tags[index] = plant.tag ?? null;
    batch.contentChecksums[index] = contentChecksum;
    batch.recordedBy[index] = recordedBy;
  }
  return batch;
}

export function unpackResults({ outcomes, revisions }: BatchResults): WriteResult[] {
  return Array.from(outcomes, (outcome, index) => {
    const result = RESULTS[outcome]!;
    return result === 'idTaken' || result === 'damaged'
      ? { rejected: result }
      : { outcome: result, revision: revisions[index]! };
  });
}
