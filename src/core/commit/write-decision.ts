/** What a write becomes, given the latest revision of its plant. Both engines follow this rule. */
import { isSameContent } from '../contract/plant.ts';
import { isIntact, revisionChecksum } from './checksum.ts';
import type { Confirmed, PlantWrite, RepeatedIdRule, WriteResult } from './plant-commits.ts';
import type { IntactRevision, PlantRevision } from './plant-revision.ts';

export type WriteDecision =
  | { kind: 'insert'; revision: IntactRevision }
  /** The write needs no revision of its own. */
  | { kind: 'result'; result: WriteResult };

const DAMAGED: WriteDecision = { kind: 'result', result: { kind: 'rejected', error: 'damaged' } };
const ID_TAKEN: WriteDecision = { kind: 'result', result: { kind: 'rejected', error: 'idTaken' } };
/** Most plants are new, so they share one result. */
const CREATED: Confirmed = { kind: 'confirmed', outcome: 'created', revision: 1 };

/**
 * @param latest undefined if no revision is known: PostgreSQL tries the first one, and its insert
 *   shows whether there is one. SQLite always knows the latest revision when it decides.
 */
export function decide(
  write: PlantWrite,
  latest: PlantRevision | undefined,
  repeatedIdRule: RepeatedIdRule,
  recordedAt: number,
): WriteDecision {
  if (latest !== undefined) {
    if (!isIntact(latest)) return DAMAGED;
    if (isSameContent(latest.plant, write.plant)) {
      const { revision } = latest;
      return { kind: 'result', result: { kind: 'confirmed', outcome: 'unchanged', revision } };
    }
    if (repeatedIdRule === 'reject') return ID_TAKEN;
  }
  return { kind: 'insert', revision: nextRevision(write, latest, recordedAt) };
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
