/** What a write becomes, given the latest revision of its plant. Both engines follow this rule. */
import { isSameContent } from '../contract/plant.ts';
import { isIntact, revisionChecksum } from './checksum.ts';
import type { Confirmed, PlantWrite, RepeatedIdRule, WriteResult } from './plant-commits.ts';
import type { IntactRevision, PlantRevision } from './plant-revision.ts';

/** The latest revision of a plant. `none`: there is no plant. */
export type LatestRevision = { kind: 'none' } | { kind: 'stored'; stored: PlantRevision };

export type WriteDecision =
  | { kind: 'insert'; revision: IntactRevision }
  /** The write needs no revision of its own. */
  | { kind: 'result'; result: WriteResult };

const DAMAGED: WriteDecision = { kind: 'result', result: { kind: 'rejected', error: 'damaged' } };
const ID_TAKEN: WriteDecision = { kind: 'result', result: { kind: 'rejected', error: 'idTaken' } };
/** Most plants are new, so they share one result. */
const CREATED: Confirmed = { kind: 'confirmed', outcome: 'created', revision: 1 };

/**
 * Whether a write may become the first revision of its plant. Then an engine inserts that without a
 * lookup, because most plants are new. If there is a plant, the insert shows it.
 */
export function mayBeFirst({ ifRevision = 0 }: PlantWrite): boolean {
  return ifRevision === 0;
}

/**
 * Content that is already stored is unchanged under any condition, so a retry is always safe. The
 * condition comes before the rule for repeated ids, so that its error names the latest revision.
 */
export function decide(
  write: PlantWrite,
  latest: LatestRevision,
  repeatedIdRule: RepeatedIdRule,
  recordedAt: number,
): WriteDecision {
  const stored = latest.kind === 'stored' ? latest.stored : undefined;
  if (stored !== undefined) {
    if (!isIntact(stored)) return DAMAGED;
    if (isSameContent(stored.plant, write.plant)) {
      const { revision } = stored;
      return { kind: 'result', result: { kind: 'confirmed', outcome: 'unchanged', revision } };
    }
  }
  const revision = stored?.revision ?? 0;
  if (write.ifRevision !== undefined && write.ifRevision !== revision)
    return { kind: 'result', result: { kind: 'rejected', error: 'plantChanged', revision } };
  if (stored !== undefined && repeatedIdRule === 'reject') return ID_TAKEN;
  return { kind: 'insert', revision: nextRevision(write, stored, recordedAt) };
}

/** The revision of a write that follows the latest one. The first revision has the number 1. */
export function nextRevision(
  { plant, contentChecksum, recordedBy }: PlantWrite,
  latest: PlantRevision | undefined,
  recordedAt: number,
): IntactRevision {
  const revision = latest === undefined ? 1 : latest.revision + 1;
  const checksum = revisionChecksum(contentChecksum, { revision, recordedAt, recordedBy });
  return { plant, revision, recordedAt, recordedBy, checksum };
}

/** The result of the write that stored this revision. */
export function storedResult({ revision }: PlantRevision): Confirmed {
  return revision === 1 ? CREATED : { kind: 'confirmed', outcome: 'revised', revision };
}
