/**
 * A batch and its results as texts. Threads exchange copies of their messages, and copy a text much
 * faster than an object for each plant.
 */
import type { PlantWrite, WriteResult } from '../../core/commit/plant-commits.ts';
import { OUTCOMES } from '../../core/contract/plant.ts';
import type { CommittedBatch } from './revision-table.ts';

/**
 * A batch as it is sent to the writer thread.
 *
 * - `integers`: id and content checksum of each plant, as an array of int64 with a character for
 *   each byte
 * - `rest`: name, tag or null, and `recordedBy` of each plant, one after the other, as a JSON array
 * - `conditions`: `ifRevision` or null of each plant, as a JSON array; absent if no plant has one,
 *   as in most batches
 */
export type PackedBatch = [integers: string, rest: string, conditions?: string];

export function packWrites(writes: readonly PlantWrite[]): PackedBatch {
  const integers = new BigInt64Array(2 * writes.length);
  const rest: unknown[] = [];
  let next = 0;
  let hasCondition = false;
  for (const { plant, contentChecksum, recordedBy, ifRevision } of writes) {
    hasCondition ||= ifRevision !== undefined;
    integers[next++] = plant.id;
    integers[next++] = contentChecksum;
    rest.push(plant.name, plant.tag ?? null, recordedBy);
  }
  const batch: PackedBatch = [Buffer.from(integers.buffer).toString('latin1'), JSON.stringify(rest)];
  if (hasCondition) batch.push(JSON.stringify(writes.map(({ ifRevision = null }) => ifRevision)));
  return batch;
}

export function unpackWrites([bytes, rest, conditions]: PackedBatch): PlantWrite[] {
  const integers = new BigInt64Array(bytes.length / 8);
  Buffer.from(integers.buffer).write(bytes, 'latin1');
  const values = JSON.parse(rest);
  const ifRevisions: (number | null)[] = conditions === undefined ? [] : JSON.parse(conditions);
  const writes: PlantWrite[] = [];
  for (let index = 0; 2 * index < integers.length; index++) {
    const plant = {
      id: integers[2 * index]!,
      name: values[3 * index],
      tag: values[3 * index + 1] ?? undefined,
    };
    const contentChecksum = integers[2 * index + 1]!;
    const ifRevision = ifRevisions[index] ?? undefined;
    writes.push({ plant, contentChecksum, recordedBy: values[3 * index + 2], ifRevision });
  }
  return writes;
}

const RESULTS = [...OUTCOMES, 'idTaken', 'damaged', 'plantChanged'] as const;

/**
 * Packs the results as numbers: for each plant an index into {@link RESULTS}, and the revision if
 * the result has one.
 */
export function packResults({ results, flushMs }: CommittedBatch): string {
  const numbers: number[] = [];
  for (const result of results) {
    numbers.push(RESULTS.indexOf(result.kind === 'confirmed' ? result.outcome : result.error));
    if ('revision' in result) numbers.push(result.revision);
  }
  return JSON.stringify({ numbers, flushMs });
}

export function unpackResults(packed: string): CommittedBatch {
  const { numbers, flushMs }: { numbers: number[]; flushMs: number } = JSON.parse(packed);
  const results: WriteResult[] = [];
  for (let next = 0; next < numbers.length; ) {
    const result = RESULTS[numbers[next++]!]!;
    if (result === 'idTaken' || result === 'damaged') results.push({ kind: 'rejected', error: result });
    else {
      const revision = numbers[next++]!;
      if (result === 'plantChanged') results.push({ kind: 'rejected', error: result, revision });
      else results.push({ kind: 'confirmed', outcome: result, revision });
    }
  }
  return { results, flushMs };
}
