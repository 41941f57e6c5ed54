import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { plantIdOf } from '../../src/client/plant-store.ts';

test('the ids of texts in docs/client.md are those of plantIdOf and of the documented rule', async () => {
  const document = readFileSync(new URL('../../docs/client.md', import.meta.url), 'utf8');
  const vectors = [...document.matchAll(/^\| `(\[".*"\])` \| ([0-9]+) \|$/gm)];
  assert.ok(vectors.length >= 6);
  for (const [, json = '', id = ''] of vectors) {
    const texts: string[] = JSON.parse(json);
    const digest = createHash('sha256').update(texts.join('\u001f').normalize('NFC')).digest('hex');
    // The digest has 256 bits.
    assert.equal(BigInt(`0x${digest}`) >> 193n, BigInt(id), json);
    assert.equal(await plantIdOf(...texts), BigInt(id), json);
  }
});

test('plantIdOf makes no id of texts that could be confused with others', async () => {
  const CASES: [texts: unknown[], RegExp][] = [
    [[], /^give at least one text$/],
    [['a', ''], /^text 2 is blank$/],
    [['\u00a0'], /^text 1 is blank$/],
    [[1998], /^text 1 is not a text$/],
    [['a\u001fb'], /^text 1 contains U\+001F/],
    [['\ud800'], /^text 1 contains an unpaired surrogate$/],
  ];
  for (const [texts, message] of CASES)
    await assert.rejects(plantIdOf(...(texts as string[])), { name: 'TypeError', message });
});
