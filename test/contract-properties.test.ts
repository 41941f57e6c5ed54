import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { int64FromNumberText } from '../src/contract/int64.ts';
import { type NewPlant, newPlantJson, plantJson, readNewPlant } from '../src/contract/plant.ts';
import { jsonBody, mutatedBody, numberText, text } from './harness/arbitrary-bodies.ts';
import { exactInteger, isStorable, secondOpinion, type Verdict } from './harness/second-opinion.ts';

/** A plant that the service takes, as a value. */
const plant = fc
  .record({
    id: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    name: text.filter(isStorable),
    tag: fc.option(text.filter(isStorable), { nil: undefined }),
  })
  .map(({ id, name, tag }): NewPlant => (tag === undefined ? { id, name } : { id, name, tag }));

/** What src says, reduced to what the second opinion says too. */
function verdict(bytes: Uint8Array): unknown {
  const { plant, error, message } = readNewPlant(bytes);
  if (error === undefined) return { plant };
  assert.equal(typeof message, 'string');
  return { error };
}

/** Counts verdicts, so that a property which only ever sees one kind of body fails. */
function tally(): { add(seen: Verdict): void; assertShares(least: Record<string, number>): void } {
  const counts = new Map<string, number>();
  let total = 0;
  return {
    add(seen) {
      const kind = 'plant' in seen ? 'plant' : seen.error;
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      total++;
    },
    assertShares(least) {
      for (const [kind, share] of Object.entries(least)) {
        const seen = (counts.get(kind) ?? 0) / total;
        assert.ok(seen >= share, `${kind}: ${seen.toFixed(3)} of ${total} bodies, fewer than ${share}`);
      }
    },
  };
}

suite('a body is read as the published schema and exact arithmetic have it', () => {
  test('JSON in every way of writing', () => {
    const seen = tally();
    fc.assert(
      fc.property(jsonBody, body => {
        const bytes = Buffer.from(body);
        const expected = secondOpinion(bytes);
        seen.add(expected);
        assert.deepEqual(verdict(bytes), expected);
      }),
      { numRuns: 6_000 },
    );
    seen.assertShares({ plant: 0.15, notNewPlant: 0.15 });
  });

  test('the same with bytes deleted, inserted, repeated and swapped', () => {
    const seen = tally();
    fc.assert(
      fc.property(mutatedBody, bytes => {
        const expected = secondOpinion(bytes);
        seen.add(expected);
        assert.deepEqual(verdict(bytes), expected);
      }),
      { numRuns: 10_000 },
    );
    seen.assertShares({ plant: 0.02, notNewPlant: 0.02, notJson: 0.3 });
  });

  test('bytes at random are never a plant, and never a failure', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), bytes => {
        assert.deepEqual(verdict(bytes), secondOpinion(bytes));
      }),
      { numRuns: 2_000 },
    );
  });

  test('numbers', () => {
    fc.assert(
      fc.property(numberText, number => {
        const exact = exactInteger(number);
        const fits = exact !== undefined && BigInt.asIntN(64, exact) === exact;
        assert.equal(int64FromNumberText(number), fits ? exact : undefined);
      }),
      { numRuns: 10_000 },
    );
  });
});

suite('the ordinary body and any other are read alike', () => {
  test('a plant in the ordinary form, and the same with its members in other orders or with one more', () => {
    fc.assert(
      fc.property(plant, expected => {
        const ordinary = newPlantJson(expected);
        const [id, ...rest] = [`"id":${expected.id}`, plantJson(expected).slice(1, -1)];
        for (const body of [
          ordinary,
          `{${rest},${id}}`,
          `${ordinary.slice(0, -1)},"more":[]}`,
          ` \n${ordinary}\t`,
        ]) {
          assert.deepEqual(readNewPlant(Buffer.from(body)), { plant: expected }, body);
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test('any body that is a plant, and the same with one more member', () => {
    fc.assert(
      fc.property(mutatedBody, bytes => {
        const reading = readNewPlant(bytes);
        fc.pre(reading.plant !== undefined && !bytes.includes('no such name'));
        const end = bytes.lastIndexOf('}');
        const extended = Buffer.concat([
          bytes.subarray(0, end),
          Buffer.from(',"no such name":0}'),
          bytes.subarray(end + 1),
        ]);
        assert.deepEqual(readNewPlant(extended), reading);
      }),
      { numRuns: 500, maxSkipsPerRun: 100 },
    );
  });
});

suite('what is written is read again', () => {
  test('a NewPlant', () => {
    fc.assert(
      fc.property(plant, expected => {
        const body = newPlantJson(expected);
        assert.deepEqual(readNewPlant(Buffer.from(body)), { plant: expected });
        assert.ok(body.startsWith(`{"id":${expected.id},`));
      }),
      { numRuns: 2_000 },
    );
  });

  test('a Plant, which has no id', () => {
    fc.assert(
      fc.property(plant, ({ id, ...expected }) => {
        assert.deepEqual(JSON.parse(plantJson({ id, ...expected } as NewPlant)), expected);
      }),
      { numRuns: 2_000 },
    );
  });
});
