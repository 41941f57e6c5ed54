import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoredToken } from '../src/contract/stored-token.ts';
import { missingTokens } from '../src/store/copy/missing-tokens.ts';
import { StoreRefused } from '../src/store/plant-store.ts';

function token(id: number, other: Partial<StoredToken> = {}): StoredToken {
  return {
    id,
    hash: String(id).repeat(64),
    label: `label ${id}`,
    createdAt: 1_000,
    expiresAt: null,
    revokedAt: null,
    lastUsedDay: null,
    changeNumber: id,
    ...other,
  };
}

/** Such as `made 2, used 1`. */
function plan(source: StoredToken[], target: StoredToken[]): string {
  return missingTokens(source, target)
    .map(copy => `${copy.what} ${copy.token.id}`)
    .join(', ');
}

const PLANS: [what: string, source: StoredToken[], target: StoredToken[], plan: string][] = [
  ['nothing', [], [], ''],
  ['a target that is empty', [token(1), token(2)], [], 'made 1, made 2'],
  ['a target that is the same', [token(1), token(2)], [token(1), token(2)], ''],
  ['another count of changes', [token(1, { changeNumber: 9 })], [token(1)], ''],
  ['a revocation', [token(1, { revokedAt: 5 })], [token(1)], 'changed 1'],
  ['a revocation of another time', [token(1, { revokedAt: 5 })], [token(1, { revokedAt: 4 })], 'changed 1'],
  ['another expiry', [token(1, { expiresAt: 5 })], [token(1)], 'changed 1'],
  ['a use', [token(1, { lastUsedDay: '2026-01-01' })], [token(1)], 'used 1'],
  ['a use of the target', [token(1)], [token(1, { lastUsedDay: '2026-01-01' })], 'used 1'],
  [
    'a revocation and a use',
    [token(1, { revokedAt: 5, lastUsedDay: '2026-01-01' })],
    [token(1)],
    'changed 1',
  ],
  [
    'changes in an order of their own',
    [
      token(1, { changeNumber: 8, revokedAt: 5 }),
      token(2, { changeNumber: 3 }),
      token(3, { changeNumber: 7 }),
    ],
    [token(1)],
    'made 2, made 3, changed 1',
  ],
];

for (const [what, source, target, expected] of PLANS) {
  test(`what makes the tokens the same: ${what}`, () => {
    assert.equal(plan(source, target), expected);
  });
}

const REFUSED: [what: string, target: StoredToken[], says: RegExp][] = [
  ['that the source does not have', [token(3)], /holds the token "label 3", which the source does not/],
  ['with another hash', [token(1, { hash: 'f'.repeat(64) })], /token 1 of the target, "label 1", is another/],
  ['with another label', [token(1, { label: 'mine' })], /token 1 of the target, "mine", is another/],
  ['made at another time', [token(1, { createdAt: 2 })], /is another/],
  ['with the label of another id', [token(3, { label: 'label 1' })], /holds the token "label 1"/],
  [
    'that is revoked in the target alone',
    [token(1, { revokedAt: 4 })],
    /"label 1" is revoked in the target and not/,
  ],
];

for (const [what, target, says] of REFUSED) {
  test(`a target is refused for a token ${what}`, () => {
    assert.throws(
      () => missingTokens([token(1), token(2)], target),
      error => error instanceof StoreRefused && says.test(error.message),
    );
  });
}
