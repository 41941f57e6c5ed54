import { OUTCOMES } from '../../contract/plant.ts';
import type { PlantRevision, PlantWrite, WriteResult } from '../plant-store.ts';

/**
 * A batch as it is sent to the writer thread. Structured clone then copies one array and one text.
 * An array of each property would cost twice as much, and objects with bigints several times as
 * much.
 */
export interface Batch {
  /** Id and content checksum of each plant, one after the other. */
  integers: BigInt64Array;
  /** Name, tag or null, and `recordedBy` of each plant, one after the other, as a JSON array. */
  rest: string;
}

/** The results of a batch: for each plant an index into {@link RESULTS}, and its revision. */
export interface BatchResults {
  outcomes: number[];
  revisions: number[];
  /** Duration of the COMMIT, which includes the flush, in ms. */
  flushMs: number;
}

/** A plant with one of the last two results has no revision; 0 stands for it. */
export const RESULTS = [...OUTCOMES, 'idTaken', 'damaged'] as const;

export function packWrites(writes: readonly PlantWrite[]): Batch {
  const integers = new BigInt64Array(2 * writes.length);
  const rest: unknown[] = [];
  let next = 0;
  for (const { plant, contentChecksum, recordedBy } of writes) {
    integers[next++] = plant.id;
    integers[next++] = contentChecksum;
    rest.push(plant.name, plant.tag ?? null, recordedBy);
  }
  return { integers, rest: JSON.stringify(rest) };
}

export function unpackWrites({ integers, rest }: Batch): PlantWrite[] {
  const values = JSON.parse(rest);
  const writes: PlantWrite[] = [];
  for (let index = 0; 2 * index < integers.length; index++) {
    const plant = {
      id: integers[2 * index]!,
      name: values[3 * index],
      tag: values[3 * index + 1] ?? undefined,
    };
    const contentChecksum = integers[2 * index + 1]!;
    writes.push({ plant, contentChecksum, recordedBy: values[3 * index + 2] });
  }
  return writes;
}

export function unpackResults({ outcomes, revisions }: BatchResults): WriteResult[] {
  return outcomes.map((outcome, index) => {
    const result = RESULTS[outcome]!;
    return result === 'idTaken' || result === 'damaged'
      ? { rejected: result }
      : { outcome: result, revision: revisions[index]! };
  });
}

/**
 * Revisions as the reading thread sends them: an array of each property. In the form of
 * {@link Batch}, `verify` would need 15 % more CPU time.
 */
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
