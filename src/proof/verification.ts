import { setImmediate as nextIteration } from 'node:timers/promises';
import { isIntact } from '../core/commit/checksum.ts';
import type { PlantRevision } from '../core/commit/plant-revision.ts';
import type { PlantReader } from '../engines/plant-reader.ts';
import { damageOf, orderFault } from './checked-revisions.ts';
import { comparisonOf, type Seal, type SealComparison, SealDigest } from './seal.ts';

export interface Verification {
  /** Undefined if there is a fault: a revision is damaged, missing or in the wrong place. */
  seal: Seal | undefined;
  /** One text for each fault, the first {@link FAULTS_SHOWN_MAX}, then their number. */
  faults: string[];
  /** The comparison with the earlier seal; undefined if there is none. */
  comparison: SealComparison | undefined;
  /** The number of revisions whose time was ahead of the clock when they were read. */
  aheadOfClock: number;
}

const FAULTS_SHOWN_MAX = 100;
/** Rows after which timers and signals can run. SQLite reads synchronously and would block them. */
export const ITERATION_ROWS = 512;

/**
 * Finds the time for a seal: that of the newest revision which is not ahead of the clock. Waits
 * until all revisions up to that time are visible, because one that appeared later would not fit the
 * seal.
 *
 * @returns ms since 1970 UTC
 */
export async function settledTime(reader: Pick<PlantReader, 'newestTime' | 'untilVisible'>): Promise<number> {
  const newest = await reader.newestTime(Date.now());
  await reader.untilVisible(newest);
  return newest;
}

/**
 * Reads every revision. Checks its checksum, and that each plant has the revisions from 1 on
 * without a gap.
 *
 * @param newDigest gets the intact revisions, for the new seal
 * @param earlier a seal to compare the store with
 */
export async function verifyRevisions(
  reader: Pick<PlantReader, 'revisions'>,
  newDigest: SealDigest,
  earlier: Seal | undefined,
  onRead: (revisionsSinceLastCall: number) => void,
): Promise<Verification> {
  const faults: string[] = [];
  let found = 0;
  const add = (fault: string): void => {
    if (++found <= FAULTS_SHOWN_MAX) faults.push(fault);
  };
  const earlierDigest = earlier && SealDigest.ofEarlier(earlier);
  let last: PlantRevision | undefined;
  let isAfterDamage = false;
  let aheadOfClock = 0;
  let count = 0;
  let now = Date.now();
  for await (const each of reader.revisions()) {
    if (isIntact(each)) {
      const fault = isAfterDamage ? undefined : placeFault(last, each);
      if (fault !== undefined) add(fault);
      newDigest.add(each);
      earlierDigest?.add(each);
      if (each.recordedAt > now) aheadOfClock++;
      last = each;
      isAfterDamage = false;
    } else {
      add(damageOf(each));
      // The key of a damaged revision may be wrong, so the place of the next revision is unknown.
      isAfterDamage = true;
    }
    if (++count % ITERATION_ROWS !== 0) continue;
    onRead(ITERATION_ROWS);
    await nextIteration();
    now = Date.now();
  }
  onRead(count % ITERATION_ROWS);
  const seal = faults.length === 0 ? newDigest.seal() : undefined;
  if (found > FAULTS_SHOWN_MAX) faults.push(`${found - FAULTS_SHOWN_MAX} more faults`);
  const comparison = earlier && comparisonOf(earlier, earlierDigest!.seal());
  return { seal, faults, comparison, aheadOfClock };
}

/** Checks the order of ids, and that each plant has the revisions from 1 on. @returns the fault */
function placeFault(last: PlantRevision | undefined, next: PlantRevision): string | undefined {
  const { plant, revision } = next;
  const expected = plant.id === last?.plant.id ? last.revision + 1 : 1;
  const fault = orderFault(last, next);
  if (fault !== undefined || revision === expected) return fault;
  return `plant ${plant.id} has a revision ${revision}, but no revision ${expected}`;
}
