import type { StoredToken } from '../../contract/stored-token.ts';
import { type PlantRevision, StoreRejected } from '../plant-store.ts';

/**
 * The revisions that the target of a copy lacks, in their order. Both sides are read side by side, to the end of both, and
 * no more than one revision of each is in memory.
 *
 * @param source in the order of ids, then revisions, as every reader gives them
 * @param target in the same order
 * @throws {StoreRefused} at the first revision of the target that the source does not have, or has with other content
 */
export async function* missingRevisions(
  source: AsyncIterable<PlantRevision>,
  target: AsyncIterable<PlantRevision>,
): AsyncIterable<PlantRevision> {
  const existing = target[Symbol.asyncIterator]();
  try {
    let next = await existing.next();
    for await (const revision of source) {
      const order = next.done ? -1 : keyOrder(revision, next.value);
      if (order < 0) {
        yield revision;
      } else if (order > 0) {
        throw foreign(revisionName(next.value));
      } else {
        if (!isSameRevision(revision, next.value)) {
          throw new StoreRejected(
            `the target holds ${revisionName(revision)} otherwise than the source does; ${ADVICE}`,
          );
        }
        next = await existing.next();
      }
    }
    if (!next.done) throw foreign(revisionName(next.value));
  } finally {
    await existing.return?.();
  }
}

/** Below 0 when the first comes before the second. */
function keyOrder(one: PlantRevision, two: PlantRevision): number {
  if (one.plant.id === two.plant.id) return one.revision - two.revision;
  return one.plant.id < two.plant.id ? -1 : 1;
}

/** Of two revisions with the same key. */
function isSameRevision(one: PlantRevision, two: PlantRevision): boolean {
  return (
    one.plant.name === two.plant.name &&
    one.plant.tag === two.plant.tag &&
    one.recordedAt === two.recordedAt &&
    one.recordedBy === two.recordedBy
  );
}

/**
 * The tokens that the target of a copy lacks, or has as they once were, in the order in which they were changed in
 * the source. The numbers of the changes are not compared: every store counts its own.
 *
 * @throws {StoreRefused} when the target has a token that the source does not have, or one that is revoked there alone:
 *   nothing lets a revoked token in again
 */
export function missingTokens(source: readonly StoredToken[], target: readonly StoredToken[]): StoredToken[] {
  const existing = new Map(target.map(token => [token.id, token]));
  const missing: StoredToken[] = [];
  for (const token of source.toSorted((a, b) => a.changeNumber - b.changeNumber)) {
    const own = existing.get(token.id);
    existing.delete(token.id);
    if (own === undefined || isChanged(token, own)) missing.push(token);
  }
  for (const { label } of existing.values()) throw foreign(`the token ${JSON.stringify(label)}`);
  return missing;
}

function isChanged(token: StoredToken, own: StoredToken): boolean {
  if (token.hash !== own.hash || token.label !== own.label || token.createdAt !== own.createdAt) {
    throw new StoreRejected(
      `token ${token.id} of the target, ${JSON.stringify(own.label)}, is another one than that of the source, ${JSON.stringify(token.label)}; ${ADVICE}`,
    );
  }
  if (own.revokedAt !== null && token.revokedAt === null) {
    throw new StoreRejected(
      `the token ${JSON.stringify(token.label)} is revoked in the target and not in the source; revoke it in the source too, and copy again`,
    );
  }
  return (
    token.revokedAt !== own.revokedAt ||
    token.expiresAt !== own.expiresAt ||
    token.lastUsedDay !== own.lastUsedDay
  );
}

const ADVICE =
  'only a store that is empty, or holds a part of the source and nothing else, can become its copy; name a new one with --to';

function revisionName({ plant, revision }: PlantRevision): string {
  return `revision ${revision} of plant ${plant.id}`;
}

function foreign(row: string): StoreRejected {
  return new StoreRejected(`the target holds ${row}, which the source does not; ${ADVICE}`);
}
