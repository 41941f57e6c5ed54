import type { PlantWrite, WriteResult } from '../../core/commit/plant-commits.ts';
import { OUTCOMES } from '../../core/contract/plant.ts';

/**
 * A batch as it is sent to the writer thread. Structured clone copies texts much faster than
 * objects.
 *
 * - `integers`: id and content checksum of each plant, as an array of int64 with a character for
 *   each byte
 * - `rest`: name, tag or null, and `recordedBy` of each plant, one after the other, as a JSON array
 */
export type Batch = [integers: string, rest: string];

/** Sent as JSON: for each plant an index into {@link RESULTS}, and its revision. */
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
  return [Buffer.from(integers.buffer).toString('latin1'), JSON.stringify(rest)];
}

export function unpackWrites([bytes, rest]: Batch): PlantWrite[] {
  const integers = new BigInt64Array(bytes.length / 8);
  Buffer.from(integers.buffer).write(bytes, 'latin1');
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
      ? { kind: 'rejected', error: result }
      : { kind: 'confirmed', outcome: result, revision: revisions[index]! };
  });
}
