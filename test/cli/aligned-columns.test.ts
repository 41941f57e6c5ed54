import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alignedColumns } from '../../src/cli/aligned-columns.ts';

test('columns stay aligned across calls, with wide characters and a last cell of any length', () => {
  const widths: number[] = [];
  const long = 'x'.repeat(99);
  assert.equal(
    alignedColumns(`7\t園芸 🌳\t${long}\n10\te\u0301\ta\n`, widths),
    `7   園芸 🌳  ${long}\n10  e\u0301        a\n`,
  );
  assert.equal(alignedColumns('1\ta\tb\n', widths), '1   a        b\n');
});
