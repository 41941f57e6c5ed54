import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { int64FromNumberText } from '../../src/contract/int64.ts';
import { readJson, readToEnd } from '../../src/contract/json-reader.ts';
import {
  type NewPlant,
  newPlantJson,
  plantJson,
  readNewPlant,
  readNewPlantInSlices,
} from '../../src/contract/plant.ts';
import { jsonBody, mutatedBody, numberText, text } from '../harness/arbitrary-bodies.ts';
import { exactInteger, isStorable, testOracle } from '../harness/test-oracle.ts';

/** A plant that the service accepts. */
const plant = fc
  .record({
    id: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    name: text.filter(isStorable),
    tag: fc.option(text.filter(isStorable), { nil: undefined }),
  })
  .map(({ id, name, tag }): NewPlant => (tag === undefined ? { id, name } : { id, name, tag }));

/** The result of src, read at once and in slices, without the message: the test oracle has none. */
function verdict(bytes: Uint8Array): unknown {
  const reading = readNewPlant(bytes);
  assert.deepEqual(readToEnd(readNewPlantInSlices(bytes)), reading);
  const { plant, error, message } = reading;
  if (error === undefined) return { plant };
  assert.equal(typeof message, 'string');
  return { error };
}

suite('a body is read according to the published schema and exact arithmetic', () => {
  /** Kinds of bodies, how many are tried, and the minimum share of each result. */
  const kinds: [what: string, bodies: fc.Arbitrary<string | Uint8Array>, runs: number, least: object][] = [
    ['JSON with varied syntax', jsonBody, 2_000, { plant: 0.15, notNewPlant: 0.15 }],
    ['the same with changed bytes', mutatedBody, 4_000, { plant: 0.02, notNewPlant: 0.02, notJson: 0.3 }],
    ['random bytes', fc.uint8Array({ maxLength: 64 }), 1_000, { notJson: 0.9 }],
  ];
  for (const [what, bodies, numRuns, least] of kinds) {
    test(what, () => {
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

  test('numbers', () => {
    fc.assert(
      fc.property(numberText, number => {
        const exact = exactInteger(number);
        const fits = exact !== undefined && BigInt.asIntN(64, exact) === exact;
        assert.equal(int64FromNumberText(number), fits ? exact : undefined);
      }),
      { numRuns: 5_000 },
    );
  });
});

suite('a text is JSON if and only if JSON.parse accepts it', () => {
  /** The beginning of each text, and parts. All sequences of parts up to a length are tried. */
  const kinds: [what: string, beginning: string, parts: string[], lengthMax: number][] = [
    ['nesting', '', ['{', '}', '[', ']', ',', ':', '"a"', '1'], 6],
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
  for (const [what, beginning, parts, lengthMax] of kinds) {
    test(what, () => {
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
});

test('a written plant is read back, also with reordered members or an additional one', () => {
  fc.assert(
    fc.property(plant, expected => {
      const plain = newPlantJson(expected);
      const { id, ...withoutId } = expected;
      assert.deepEqual(JSON.parse(plantJson(expected)), withoutId);
      const rest = plantJson(expected).slice(1, -1);
      for (const body of [plain, `{${rest},"id":${id}}`, `${plain.slice(0, -1)},"more":[]}`])
        assert.deepEqual(readNewPlant(Buffer.from(body)), { plant: expected }, body);
    }),
    { numRuns: 1_000 },
  );
});
