import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ID_MAX, ID_MIN } from '../../../src/contract/limits.ts';
import type { StoredToken } from '../../../src/contract/stored-token.ts';
import { withChecksum } from '../../../src/store/checksum.ts';
import { missingRevisions, missingTokens } from '../../../src/store/copy/missing-rows.ts';
import { type PlantRevision, StoreRejected } from '../../../src/store/plant-store.ts';

function revision(id: bigint, number = 1, name = `plant ${id}`, tag?: string): PlantRevision {
  const plant = tag === undefined ? { id, name } : { id, name, tag };
  return withChecksum({ plant, revision: number, recordedAt: 1_767_225_600_000, recordedBy: 1 });
}

async function* read<T>(rows: T[]): AsyncIterable<T> {
  yield* rows;
}

function missing(source: PlantRevision[], target: PlantRevision[]): Promise<PlantRevision[]> {
  return Array.fromAsync(missingRevisions(read(source), read(target)));
}

function rejects(says: RegExp): (error: unknown) => boolean {
  return error => error instanceof StoreRejected && says.test(error.message);
}

const SOURCE = [
  revision(ID_MIN),
  revision(-1n),
  revision(-1n, 2, 'again'),
  revision(-1n, 10, 'at last', ''),
  revision(2n ** 53n),
  revision(2n ** 53n + 1n, 1, 'neighbour', 'tagged'),
  revision(ID_MAX),
];

test('for any part of the source, the missing rows are the rest in the order of the source', async () => {
  for (let stored = 0; stored < 2 ** SOURCE.length; stored++) {
    const target = SOURCE.filter((_, index) => stored & (1 << index));
    const rest = SOURCE.filter((_, index) => !(stored & (1 << index)));
    assert.deepEqual(await missing(SOURCE, structuredClone(target)), rest);
  }
});

test('a target is rejected if it has a row that the source does not have', async () => {
  const cases: [target: PlantRevision, says: RegExp][] = [
    [revision(ID_MIN, 0), /revision 0 of plant -9223372036854775808, but/],
    [revision(5n), /revision 1 of plant 5, but the source does not/],
    // A double takes this id for its neighbour.
    [revision(2n ** 53n + 2n), /plant 9007199254740994, but/],
    [revision(ID_MAX, 2), /revision 2 of plant 9223372036854775807, but/],
    [revision(-1n, 3, 'again'), /revision 3 of plant -1, but/],
    [revision(-1n, 2, 'Again'), /revision 2 of plant -1 has other content/],
    [revision(-1n, 10, 'at last'), /revision 10 of plant -1 has other content/],
    [{ ...revision(-1n), recordedAt: 0 }, /has other content/],
    [{ ...revision(-1n), recordedBy: 2 }, /has other content/],
  ];
  for (const [foreign, says] of cases) await assert.rejects(missing(SOURCE, [foreign]), rejects(says));
  const tokens: [target: StoredToken, says: RegExp][] = [
    [token(3), /contains the token "label 3", but the source does not/],
    [token(1, { hash: 'f'.repeat(64) }), /token 1 of the target, "label 1", differs/],
    [token(1, { label: 'mine' }), /token 1 of the target, "mine", differs/],
    [token(1, { createdAt: 2 }), /differs/],
    [token(1, { revokedAt: 4 }), /"label 1" is revoked in the target, but not/],
  ];
  for (const [foreign, says] of tokens)
    assert.throws(() => missingTokens([token(1), token(2)], [foreign]), rejects(says));
});

function token(id: number, other: Partial<StoredToken> = {}): StoredToken {
  return {
    ...{ id, hash: String(id).repeat(64), label: `label ${id}`, createdAt: 1_000, expiresAt: null },
    ...{ revokedAt: null, lastUsedDay: null, changeNumber: id },
    ...other,
  };
}

test('the tokens to copy are new or changed, in the order of their changes', () => {
  const used = { lastUsedDay: '2026-01-01' };
  const cases: [source: StoredToken[], target: StoredToken[], plan: number[]][] = [
    [[token(1), token(2)], [], [1, 2]],
    [[token(1, { changeNumber: 9 })], [token(1)], []],
    [[token(1, { revokedAt: 5 })], [token(1)], [1]],
    [[token(1, { expiresAt: 5 })], [token(1)], [1]],
    [[token(1, used)], [token(1)], [1]],
    [[token(1)], [token(1, used)], [1]],
    [
      [token(1, { changeNumber: 8, revokedAt: 5 }), token(2, { changeNumber: 3 }), token(3)],
      [token(1)],
      [2, 3, 1],
    ],
  ];
  for (const [source, target, plan] of cases)
    assert.deepEqual(
      missingTokens(source, target).map(({ id }) => id),
      plan,
    );
});
