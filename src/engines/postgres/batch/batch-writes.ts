import type { PlantWrite, WriteResult } from '../../../core/commit/plant-commits.ts';
import type { PlantRevision } from '../../../core/commit/plant-revision.ts';
import { type LatestRevision, storedResult } from '../../../core/commit/write-decision.ts';

/** The status of one write. The table of `BatchCommit` has all its changes. */
type WriteStatus =
  | { kind: 'open' }
  | Sent
  /** The result depends on a looked-up revision. A failover may lose that until a commit. */
  | { kind: 'unconfirmed'; result: WriteResult }
  | { kind: 'settled'; result: WriteResult };

/** The server may have stored this revision, or may still store it. */
export interface Sent {
  kind: 'sent';
  write: BatchWrite;
  revision: PlantRevision;
  /** The revision before it; undefined if it is the first. */
  base: PlantRevision | undefined;
}

export interface BatchWrite extends PlantWrite {
  readonly sameId: SameId;
  status: WriteStatus;
}

/** The writes of one id. */
export interface SameId {
  /** In the order of the batch, and of statuses: settled, unconfirmed, at most one sent, open. */
  readonly writes: BatchWrite[];
  /** The latest revision in the store. It is known if this call of `run` has inserted it or looked it up. */
  latest: LatestRevision | { kind: 'unknown' };
}

export const OPEN: WriteStatus = { kind: 'open' };
export const UNKNOWN: SameId['latest'] = { kind: 'unknown' };

export function unknownId(): SameId {
  return { writes: [], latest: UNKNOWN };
}

export function isPartlySettled({ writes }: SameId): boolean {
  return writes[0]!.status.kind === 'settled' && writes.at(-1)!.status.kind !== 'settled';
}

/**
 * Settles a write whose revision is stored, and the earlier writes of its id. If an earlier write
 * were opened again, the earlier plant would get the later number.
 */
export function settleStored({ write, revision: stored }: Sent): void {
  const { sameId } = write;
  settleUnconfirmed(sameId.writes);
  write.status = { kind: 'settled', result: storedResult(stored) };
  sameId.latest = { kind: 'stored', stored };
}

/** Whether the result of a write of the id is not confirmed. */
export function hasUnconfirmed({ writes }: SameId): boolean {
  return writes.some(({ status }) => status.kind === 'unconfirmed');
}

/** Whether the result of a write depends on this: there is no plant. */
export function isOfNoPlant({ status }: BatchWrite): boolean {
  if (status.kind !== 'unconfirmed') return false;
  const { result } = status;
  return result.kind === 'rejected' && result.error === 'plantChanged' && result.revision === 0;
}

/** Settles the writes that have a result. Called after a commit of their server. */
export function settleUnconfirmed(writes: readonly BatchWrite[]): void {
  for (const write of writes) {
    const { status } = write;
    if (status.kind === 'unconfirmed') write.status = { kind: 'settled', result: status.result };
  }
}

export function resultOf({ status }: BatchWrite): WriteResult {
  if (status.kind !== 'settled') throw new Error(`a write of the batch is ${status.kind}`);
  return status.result;
}
