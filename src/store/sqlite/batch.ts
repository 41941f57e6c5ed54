import { OUTCOMES } from '../../contract/plant.ts';
import type { PlantWrite, WriteResult } from '../plant-store.ts';

/**
 * A batch on its way to the writer thread, by columns. Structured clone then copies four arrays instead of an
 * object with a bigint for every plant, which costs several times the insert itself.
 */
export interface Batch {
  ids: BigInt64Array;
  names: string[];
  tags: (string | null)[];
  recordedBy: Float64Array;
}

/** The results of a batch on their way back: for each plant the place of what became of it in {@link RESULTS}, and its revision. */
export interface BatchResults {
  outcomes: Uint8Array;
  revisions: Uint32Array;
  /** How long the COMMIT took, which flushes, in ms. */
  flushMs: number;
}

/** The last one has no revision. */
export const RESULTS = [...OUTCOMES, 'idTaken'] as const;

export function packWrites(writes: readonly PlantWrite[]): Batch {
  const batch: Batch = {
    ids: new BigInt64Array(writes.length),
    names: new Array(writes.length),
    tags: new Array(writes.length),
    recordedBy: new Float64Array(writes.length),
  };
  for (const [index, { plant, recordedBy }] of writes.entries()) {
    batch.ids[index] = plant.id;
    batch.names[index] = plant.name;
    batch.tags[index] = plant.tag ?? null;
    batch.recordedBy[index] = recordedBy;
  }
  return batch;
}

export function unpackResults({ outcomes, revisions }: BatchResults): WriteResult[] {
  return Array.from(outcomes, (place, index) => {
    const result = RESULTS[place]!;
    return result === 'idTaken' ? { rejected: result } : { outcome: result, revision: revisions[index]! };
  });
}
