import type { IntactRevision } from '../core/commit/plant-revision.ts';
import { StoreRejected } from '../core/commit/store-errors.ts';
import { isSameContent } from '../core/contract/plant.ts';
import type { StoredToken } from '../core/tokens/stored-token.ts';
import { keyOrder, revisionName } from '../engines/tables/revision-rows.ts';
import { type CheckedRevision, Damaged } from './checked-revisions.ts';

/**
 * Yields the revisions that the target of a copy lacks. Reads both stores to their ends.
 *
 * A damaged revision of the source is not copied, and its key may be wrong. The target may have it
 * intact from an earlier copy. So for each damaged revision, the target may have one revision more
 * in its place.
 *
 * @throws {StoreRejected} at the first revision that the source lacks, or has with other content
 */
export async function* missingRevisions(
  source: AsyncIterable<CheckedRevision>,
  target: AsyncIterable<CheckedRevision>,
): AsyncIterable<IntactRevision> {
  const existing = intact(target);
  /** Damaged revisions of the source since the last intact one. */
  let damaged = 0;
  /** Accepts a revision that only the target has, if a damaged one of the source explains it. */
  const skip = (extra: IntactRevision) => {
    if (damaged === 0) throw notInSource(revisionName(extra));
    damaged--;
    return existing.next();
  };
  try {
    let next = await existing.next();
    for await (const revision of source) {
      if (revision instanceof Damaged) {
        damaged++;
        continue;
      }
      while (!next.done && keyOrder(next.value, revision) < 0) next = await skip(next.value);
      damaged = 0;
      if (next.done || keyOrder(revision, next.value) < 0) {
        yield revision;
      } else {
        if (!isSameRevision(revision, next.value)) {
          throw new StoreRejected(
            `${revisionName(revision)} has other content in the target than in the source`,
            { advice: ADVICE },
          );
        }
        next = await existing.next();
      }
    }
    while (!next.done) next = await skip(next.value);
  } finally {
    await existing.return();
  }
}

async function* intact(revisions: AsyncIterable<CheckedRevision>): AsyncGenerator<IntactRevision, void> {
  for await (const revision of revisions) if (!(revision instanceof Damaged)) yield revision;
}

function isSameRevision(one: IntactRevision, two: IntactRevision): boolean {
  return (
    isSameContent(one.plant, two.plant) &&
    one.recordedAt === two.recordedAt &&
    one.recordedBy === two.recordedBy
  );
}

/**
 * The tokens that the target of a copy lacks or has in another state, in the order in which the
 * source changed them. Change numbers are not compared, since every store has its own.
 *
 * @throws {StoreRejected} also for a token that only the target has revoked
 */
export function missingTokens(source: readonly StoredToken[], target: readonly StoredToken[]): StoredToken[] {
  const existing = new Map(target.map(token => [token.id, token]));
  const missing: StoredToken[] = [];
  for (const token of source.toSorted((a, b) => a.changeNumber - b.changeNumber)) {
    const stored = existing.get(token.id);
    existing.delete(token.id);
    if (stored === undefined || isChanged(token, stored)) missing.push(token);
  }
  for (const { label } of existing.values()) throw notInSource(`the token ${JSON.stringify(label)}`);
  return missing;
}

/** @throws {StoreRejected} if they are different tokens, or only the target has it revoked */
function isChanged(token: StoredToken, stored: StoredToken): boolean {
  if (token.hash !== stored.hash || token.label !== stored.label || token.createdAt !== stored.createdAt) {
    throw new StoreRejected(
      `token ${token.id} of the target, ${JSON.stringify(stored.label)}, differs from token ${token.id} of the source, ${JSON.stringify(token.label)}`,
      { advice: ADVICE },
    );
  }
  if (stored.revokedAt !== null && token.revokedAt === null) {
    throw new StoreRejected(
      `the token ${JSON.stringify(token.label)} is revoked in the target, but not in the source`,
      { advice: 'revoke it in the source, too, and copy again' },
    );
  }
  return (
    token.revokedAt !== stored.revokedAt ||
    token.expiresAt !== stored.expiresAt ||
    token.lastUsedDay !== stored.lastUsedDay
  );
}

const ADVICE =
  'the target of a copy must be empty or contain only rows of the source; name a new store with --to';

function notInSource(row: string): StoreRejected {
  return new StoreRejected(`the target contains ${row}, but the source does not`, { advice: ADVICE });
}
