import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { suite, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { int64FromNumberText } from '../src/contract/int64.ts';
import { openApiJson } from '../src/contract/openapi.ts';
import { type NewPlant, newPlantJson, plantJson, readNewPlant } from '../src/contract/plant.ts';

/*
 * A second opinion on every body: Ajv with the published schema says whether it has the shape, BigInt arithmetic
 * says what its id is, and a list of tokens says whether a name is repeated. Nothing of it is shared with src but
 * the published description. It may be slow and it need not stand hostile nesting; it must be plainly right.
 */

type Verdict = { plant: NewPlant } | { error: 'notJson' | 'notNewPlant' };

const ajv = new Ajv2020({ formats: { int32: true, int64: true } });
ajv.addVocabulary(['components']);
ajv.addSchema({ $id: 'plant-store', components: { schemas: JSON.parse(openApiJson()).components.schemas } });
const hasShape = ajv.compile({ $ref: 'plant-store#/components/schemas/NewPlant' });

function secondOpinion(bytes: Uint8Array): Verdict {
  const text = Buffer.from(bytes).toString('utf8');
  if (!isUtf8(bytes) || text.startsWith('\ufeff')) return { error: 'notJson' };

  const idSources = new Map<unknown, string>();
  let value: { id: number; name: string; tag?: string };
  try {
    // A reviver is told the digits of a number, and `this` is the object that holds it.
    value = JSON.parse(text, function (this: unknown, key, held, context?: { source?: string }) {
      if (key === 'id') idSources.set(this, context?.source ?? '');
      return held;
    });
  } catch {
    return { error: 'notJson' };
  }
  if (!hasShape(value)) return { error: 'notNewPlant' };

  const { name, tag } = value;
  const id = exactInteger(idSources.get(value) ?? '');
  const names = topLevelNames(text);
  if (id === undefined || id < -(2n ** 63n) || id > 2n ** 63n - 1n) return { error: 'notNewPlant' };
  if (new Set(names).size < names.length) return { error: 'notNewPlant' };
  if (!isStorable(name) || !isStorable(tag ?? '')) return { error: 'notNewPlant' };
  return { plant: tag === undefined ? { id, name } : { id, name, tag } };
}

/**
 * The value of a JSON number, as numerator / 10^places, if that is an integer. Beyond 1,000 places the numbers of
 * these tests have no digits left to make up for the exponent, so it is not worked out.
 */
function exactInteger(text: string): bigint | undefined {
  const [mantissa = '', exponentText = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const numerator = BigInt(`${whole}${fraction}`.replace('-', ''));
  const sign = mantissa.startsWith('-') ? -1n : 1n;
  if (numerator === 0n) return 0n;
  const places = BigInt(fraction.length) - BigInt(exponentText.replace('+', ''));
  if (places < -1_000n) return sign * 10n ** 1_000n;
  if (places <= 0n) return sign * numerator * 10n ** -places;
  if (places > 1_000n) return undefined;
  return numerator % 10n ** places === 0n ? (sign * numerator) / 10n ** places : undefined;
}

/** The names of the members of the outermost object, repeats included. */
function topLevelNames(json: string): string[] {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s"{}[\]:,]+/g) ?? [];
  const names: string[] = [];
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    if (token === '{' || token === '[') depth++;
    if (token === '}' || token === ']') depth--;
    if (depth === 1 && tokens[index + 1] === ':') names.push(JSON.parse(token));
  }
  return names;
}

/** Whether UTF-8 holds the text, and it has no U+0000. */
function isStorable(text: string): boolean {
  return Buffer.from(text).toString() === text && !text.includes('\u0000');
}

// Arbitrary bodies.

const digits = (maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength });

/** Texts of JSON numbers around the ends of 64 bits, around 2^53, and of every form. */
const numberText = fc.oneof(
  { weight: 4, arbitrary: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String) },
  fc
    .tuple(fc.constantFrom(0n, 2n ** 31n, 2n ** 53n, 2n ** 63n, 2n ** 64n), fc.bigInt({ min: -3n, max: 3n }))
    .chain(([centre, offset]) => fc.constantFrom(String(centre + offset), String(-centre + offset))),
  fc
    .record({
      sign: fc.constantFrom('', '-'),
      whole: fc.oneof(fc.constant('0'), fc.bigInt({ min: 1n, max: 10n ** 20n }).map(String)),
      zeros: fc.nat(24),
      fraction: fc.option(fc.oneof(digits(22), fc.constantFrom('0', '5', '00000000000000000000'))),
      exponent: fc.option(
        fc.tuple(
          fc.constantFrom('e', 'E'),
          fc.constantFrom('', '+', '-'),
          fc.oneof(fc.nat(25).map(String), fc.constantFrom('00', '007', '308', '400', '999', '999999999')),
        ),
      ),
    })
    .map(({ sign, whole, zeros, fraction, exponent }) => {
      const integer = whole === '0' ? '0' : whole + '0'.repeat(zeros);
      return sign + integer + (fraction === null ? '' : `.${fraction}`) + (exponent ?? []).join('');
    }),
  // The exponent takes back what the zeros give, so that an integer hides behind a fraction and the reverse.
  fc
    .tuple(fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }), fc.nat(30), fc.integer({ min: -2, max: 2 }))
    .map(([value, zeros, off]) => `${value}${value === 0n ? '' : '0'.repeat(zeros)}e${off - zeros}`),
);

/** Texts with what makes trouble: quotes, escapes, U+0000, the signs of JSON, surrogates alone and in pairs. */
const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 8 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }) },
  {
    weight: 1,
    arbitrary: fc.string({
      unit: fc.constantFrom('\u0000', '\ud83c', '\udf31', '"', '\\', '}', 'a'),
      maxLength: 4,
    }),
  },
);

/** One text, written as JSON with some of its UTF-16 code units in escapes; an unpaired surrogate always is. */
const stringText = (value: string) =>
  fc.infiniteStream(fc.constantFrom('plain', 'plain', 'plain', 'lower', 'UPPER')).map(forms => {
    const units = [...value].flatMap(character => {
      const form = forms.next().value;
      if (form === 'plain') return [JSON.stringify(character).slice(1, -1)];
      const escapes = Array.from({ length: character.length }, (_, index) =>
        character.charCodeAt(index).toString(16).padStart(4, '0'),
      );
      return escapes.map(hex => `\\u${form === 'UPPER' ? hex.toUpperCase() : hex}`);
    });
    return `"${units.join('')}"`;
  });

const otherValueText = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }).map(value => JSON.stringify(value)),
  fc.constantFrom('null', 'true', '[]', '{}', '1e999', '{"id":1,"id":2}', '[{"name":"}"},","]'),
);

/** A member as name and text of the value; the usual one nine times of ten. */
function memberArbitrary(name: string, usual: fc.Arbitrary<string>): fc.Arbitrary<[string, string]> {
  const value = fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: otherValueText });
  return fc.tuple(fc.constant(name), value);
}

const idMember = memberArbitrary('id', numberText);
const nameMember = memberArbitrary('name', text.chain(stringText));
const tagMember = memberArbitrary('tag', text.chain(stringText));
const extraMember = fc.tuple(
  fc.oneof(
    text,
    fc.constantFrom('__proto__', 'constructor', 'toString', 'Id', 'NAME', 'id', 'name', 'tag', ''),
  ),
  otherValueText,
);
const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 2 });

/** Bodies that are JSON, most of them a NewPlant, in every order, spacing and way of writing. */
const jsonBody = fc
  .tuple(
    fc.option(idMember, { freq: 20 }),
    fc.option(nameMember, { freq: 20 }),
    fc.option(tagMember, { freq: 2 }),
    fc.array(extraMember, { maxLength: 2 }),
    fc.boolean(),
  )
  .chain(([id, name, tag, extras, inOrder]) => {
    const members = [id, name, tag, ...extras].filter(member => member !== null);
    return inOrder ? fc.constant(members) : fc.shuffledSubarray(members, { minLength: members.length });
  })
  .chain(members =>
    fc.tuple(
      fc.tuple(
        ...members.map(([name, value]) => stringText(name).map(nameText => [nameText, value] as const)),
      ),
      fc.infiniteStream(fc.oneof({ weight: 2, arbitrary: fc.constant('') }, { weight: 1, arbitrary: space })),
    ),
  )
  .map(([members, spaces]) => {
    const spaced = (token: string) => spaces.next().value + token + spaces.next().value;
    return spaced(`{${members.map(([name, value]) => `${spaced(name)}:${spaced(value)}`).join()}}`);
  });

/** One change to some bytes; positions are fractions of the length. */
interface Mutation {
  kind: 'delete' | 'insert' | 'repeat' | 'swap';
  at: number;
  to: number;
  byte: number;
}

const fractionOfLength = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom('delete', 'insert', 'repeat', 'swap'),
  at: fractionOfLength,
  to: fractionOfLength,
  byte: fc.oneof(
    fc.nat(255),
    fc.constantFrom(...Buffer.from('{}[]",:\\-+.eE0159 \n\0'), 0xef, 0xbb, 0xbf, 0xed, 0xa0),
  ),
});

function mutate(bytes: Buffer, { kind, at, to, byte }: Mutation): Buffer {
  if (bytes.length === 0) return bytes;
  const [first, second] = [Math.floor(at * bytes.length), Math.floor(to * bytes.length)];
  const [start, end] = [Math.min(first, second), Math.max(first, second) + 1];
  if (kind === 'delete') return Buffer.concat([bytes.subarray(0, first), bytes.subarray(first + 1)]);
  if (kind === 'insert')
    return Buffer.concat([bytes.subarray(0, first), Buffer.of(byte), bytes.subarray(first)]);
  if (kind === 'repeat') return Buffer.concat([bytes.subarray(0, end), bytes.subarray(start)]);
  const swapped = Buffer.from(bytes);
  swapped[first] = bytes[second]!;
  swapped[second] = bytes[first]!;
  return swapped;
}

const mutatedBody = fc
  .tuple(jsonBody, fc.array(mutation, { minLength: 1, maxLength: 3 }))
  .map(([body, mutations]) => mutations.reduce(mutate, Buffer.from(body)));

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
