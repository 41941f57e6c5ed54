import { OUTCOMES } from '../../contract/plant.ts';
import type { PlantRevision, PlantWrite, WriteResult } from '../plant-store.ts';

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

/** Revisions as the reading thread sends them, by columns for the same reason. */
export interface RevisionBatch {
  ids: BigInt64Array;
  revisions: Float64Array;
  names: string[];
  tags: (string | undefined)[];
  recordedAt: Float64Array;
  recordedBy: Float64Array;
  checksums: BigInt64Array;
  /** Why no batch follows. The class of an error is lost between threads, hence `isRejection`. */
  end: 'complete' | { message: string; errcode: number | undefined; isRejection: boolean } | undefined;
}

export function packRevisions(rows: PlantRevision[], end?: RevisionBatch['end']): RevisionBatch {
  return {
    ids: new BigInt64Array(rows.map(({ plant }) => plant.id)),
    revisions: new Float64Array(rows.map(({ revision }) => revision)),
    names: rows.map(({ plant }) => plant.name),
    tags: rows.map(({ plant }) => plant.tag),
    recordedAt: new Float64Array(rows.map(({ recordedAt }) => recordedAt)),
    recordedBy: new Float64Array(rows.map(({ recordedBy }) => recordedBy)),
    checksums: new BigInt64Array(rows.map(({ checksum }) => checksum)),
    end,
  };
}

export function unpackRevisions(batch: RevisionBatch): PlantRevision[] {
  return batch.names.map((name, index) => {
    const plant = { id: batch.ids[index]!, name };
    const tag = batch.tags[index];
    return {
      plant: tag === undefined ? plant : { ...plant, tag },
      revision: batch.revisions[index]!,
      recordedAt: batch.recordedAt[index]!,
      recordedBy: batch.recordedBy[index]!,
      checksum: batch.checksums[index]!,
    };
  });
}
