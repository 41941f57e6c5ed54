import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readJson, readToEnd } from '../../../src/core/contract/json-reader.ts';
import { readNewPlant, readNewPlantInSlices } from '../../../src/core/contract/plant.ts';
import { jsonBody, mutatedBody } from '../../harness/arbitrary-bodies.ts';
import { testOracle } from '../../harness/test-oracle.ts';

/** The result of src, read at once and in slices, without the message: the test oracle has none. */
function verdict(bytes: Uint8Array): unknown {
  const reading = readNewPlant(bytes);
  assert.deepEqual(readToEnd(readNewPlantInSlices(bytes)), reading);
  if (reading.kind === 'plant') return { plant: reading.plant };
  assert.equal(typeof reading.message, 'string');
  return { error: reading.error };
}

/** Kinds of bodies, how many are tried, and the minimum share of each result. */
const BODIES: [what: string, bodies: fc.Arbitrary<string | Uint8Array>, runs: number, least: object][] = [
  ['JSON with varied syntax', jsonBody, 4_000, { plant: 0.15, notNewPlant: 0.15 }],
  ['the same with changed bytes', mutatedBody, 4_000, { plant: 0.02, notNewPlant: 0.02, notJson: 0.3 }],
  ['random bytes', fc.uint8Array({ maxLength: 64 }), 1_000, { notJson: 0.9 }],
];
for (const [what, bodies, numRuns, least] of BODIES) {
  test(`a body is read according to the published schema and exact arithmetic: ${what}`, () => {
    const seen: Record<string, number> = {};
    const property = fc.property(bodies, body => {
      const bytes = Buffer.from(body as string);
      const expected = testOracle(bytes);
      const kind = 'plant' in expected ? 'plant' : expected.error;
      seen[kind] = (seen[kind] ?? 0) + 1;
      assert.deepEqual(verdict(bytes), expected);
    });
    fc.assert(property, { numRuns });
    for (const [kind, share] of Object.entries(least))
      assert.ok((seen[kind] ?? 0) >= share * numRuns, `${kind}: ${seen[kind]} of ${numRuns}`);
  });
}

/** The beginning of each text, and parts. All sequences of parts up to a length are tried. */
const TEXTS: [what: string, beginning: string, parts: string[], lengthMax: number][] = [
  ['nesting', '', ['{', '}', '[', ']', ',', ':', '"a"', '1'], 5],
  ['numbers and literals', '', ['-', '0', '1', '.', 'e', '+', ' ', 'true', 'null'], 5],
  ['strings', '"', ['"', '\\', 'u', '00', 'aF', 'n', '\n', '\u2028', '\ud800', ' '], 5],
];
const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
for (const [what, beginning, parts, lengthMax] of TEXTS) {
  test(`a text is JSON if and only if JSON.parse accepts it: ${what}`, () => {
    let texts = [beginning];
    for (let length = 0; length <= lengthMax; length++) {
      const differences = texts.filter(
        text => (readToEnd(readJson(text, () => {})) === undefined) !== isJson(text),
      );
      assert.deepEqual(differences, []);
      texts = length < lengthMax ? texts.flatMap(text => parts.map(part => text + part)) : [];
    }
  });
}
