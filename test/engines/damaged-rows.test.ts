import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isIntact } from '../../src/core/commit/checksum.ts';
import { revisionOf } from '../../src/engines/tables/revision-rows.ts';
import type { Row } from '../../src/engines/tables/table-access.ts';
import { tokenOf } from '../../src/engines/tables/token-rows.ts';
import { revisionOfRow } from '../harness/stored-revisions.ts';

/** Values that SQLite may find in a column of a damaged file. */
const WRONG_TYPES: unknown[] = [null, 0.5, 0, '', ' ', 'text', new Uint8Array(), new Uint8Array([0])];

test('a revision with a value of a wrong type is not intact, even if the value is read as the original', () => {
  // Each value is the one that is read in place of a value of a wrong type.
  const { checksum } = revisionOfRow([0, 0, '', '', 0, 0]);
  const sqlite: unknown[] = [0n, 0n, '', '', 0n, 0n, checksum];
  const postgres: unknown[] = ['0', '0', '', '', '0', '0', String(checksum)];
  for (const row of [sqlite, postgres]) {
    assert.ok(isIntact(revisionOf(row as Row)));
    for (const [column, value] of row.entries()) {
      const isText = value === '';
      for (const wrong of WRONG_TYPES.filter(each => !isText || typeof each !== 'string')) {
        const damaged = revisionOf(row.with(column, wrong) as Row);
        assert.ok(!isIntact(damaged), `column ${column}: ${String(wrong)}`);
      }
    }
  }
});

test('a token with a value of a wrong type is not valid', () => {
  const row: unknown[] = [1n, 'hash', 'label', 1n, 9_000n, 5n, '2026-01-01', 1n];
  for (const wrong of WRONG_TYPES.slice(1)) {
    const { expiresAt, revokedAt } = tokenOf(row.with(4, wrong).with(5, wrong) as Row);
    assert.deepEqual([expiresAt, revokedAt], [0, 0], String(wrong));
    if (typeof wrong !== 'string') assert.equal(tokenOf(row.with(1, wrong) as Row).hash, '');
  }
  for (const wrong of [1e300, '1e20', '0x7fffffffffffff'])
    assert.equal(tokenOf(row.with(4, wrong) as Row).expiresAt, 0);
  assert.equal(tokenOf(row.with(4, 8_640_000_000_000_001n) as Row).expiresAt, null);
  assert.equal(tokenOf(row.with(5, null) as Row).revokedAt, null);
});
