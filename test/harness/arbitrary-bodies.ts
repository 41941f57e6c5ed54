import fc from 'fast-check';

/** JSON numbers as text: near both ends of int64, near 2^53, and in every form. */
const numberText = fc.oneof(
  { weight: 4, arbitrary: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String) },
  fc
    .tuple(fc.constantFrom(0n, 2n ** 31n, 2n ** 53n, 2n ** 63n, 2n ** 64n), fc.bigInt({ min: -3n, max: 3n }))
    .chain(([centre, offset]) => fc.constantFrom(String(centre + offset), String(-centre + offset))),
  fc.stringMatching(
    /^-?(?:0|[1-9][0-9]{0,19}0{0,24})(?:\.(?:[0-9]{1,22}|5|0{1,20}))?(?:[eE][+-]?(?:[0-9]{1,2}|007|308|400|9{9}))?$/,
  ),
  // The exponent cancels the trailing zeros, so that a fraction can be an integer and the reverse.
  fc
    .tuple(fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }), fc.nat(30), fc.integer({ min: -2, max: 2 }))
    .map(([value, zeros, off]) => `${value}${value === 0n ? '' : '0'.repeat(zeros)}e${off - zeros}`),
);

/** Texts with quotes, escapes, U+0000, JSON punctuation, and lone or paired surrogates. */
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

/**
 * A JSON string with some of its UTF-16 code units escaped. Unpaired surrogates are always escaped.
 */
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

/** A member: the texts of its name and its value. Nine times of ten the value is the usual one. */
function memberArbitrary(name: string, usual: fc.Arbitrary<string>): fc.Arbitrary<[string, string]> {
  const value = fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: otherValueText });
  return fc.tuple(stringText(name), value);
}

const extraName = fc.oneof(
  text,
  fc.constantFrom('__proto__', 'constructor', 'toString', 'Id', 'NAME', 'id', 'name', 'tag', ''),
);

const members = fc
  .tuple(
    fc.option(memberArbitrary('id', numberText), { freq: 20 }),
    fc.option(memberArbitrary('name', text.chain(stringText)), { freq: 20 }),
    fc.option(memberArbitrary('tag', text.chain(stringText)), { freq: 2 }),
    fc.array(fc.tuple(extraName.chain(stringText), otherValueText), { maxLength: 2 }),
    fc.boolean(),
  )
  .chain(([id, name, tag, extras, inOrder]) => {
    const given = [id, name, tag, ...extras].filter(member => member !== null);
    return inOrder ? fc.constant(given) : fc.shuffledSubarray(given, { minLength: given.length });
  });

const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 2 });

/** JSON bodies, most of them a NewPlant, with members in any order and with any spacing. */
export const jsonBody = fc
  .tuple(members, fc.infiniteStream(fc.oneof({ weight: 2, arbitrary: fc.constant('') }, space)))
  .map(([given, spaces]) => {
    const spaced = (token: string) => spaces.next().value + token + spaces.next().value;
    return spaced(`{${given.map(([name, value]) => `${spaced(name)}:${spaced(value)}`).join()}}`);
  });

const FRACTIONS = 2 ** 20;
/** From 0 to below 1, evenly distributed: `fc.double` prefers numbers close to 0. */
export const fraction = fc.noBias(fc.nat(FRACTIONS - 1)).map(part => part / FRACTIONS);

/** One change to some bytes. */
export const byteMutation = fc
  .record({
    kind: fc.constantFrom('delete', 'insert', 'repeat', 'swap'),
    at: fraction,
    to: fraction,
    byte: fc.oneof(
      fc.nat(255),
      fc.constantFrom(...Buffer.from('{}[]",:\\-+.eE0159 \r\n\t\0'), 0xef, 0xbb, 0xbf, 0xed, 0xa0),
    ),
  })
  .map(({ kind, at, to, byte }) => (bytes: Buffer): Buffer => {
    if (bytes.length === 0) return bytes;
    const [first, second] = [Math.floor(at * bytes.length), Math.floor(to * bytes.length)];
    const [start, end] = [Math.min(first, second), Math.max(first, second) + 1];
    const [before, rest] = [bytes.subarray(0, first), bytes.subarray(first)];
    if (kind === 'delete') return Buffer.concat([before, rest.subarray(1)]);
    if (kind === 'insert') return Buffer.concat([before, Buffer.of(byte), rest]);
    if (kind === 'repeat') return Buffer.concat([bytes.subarray(0, end), bytes.subarray(start)]);
    const swapped = Buffer.from(bytes);
    swapped[first] = bytes[second]!;
    swapped[second] = bytes[first]!;
    return swapped;
  });

export const mutatedBody = fc
  .tuple(jsonBody, fc.array(byteMutation, { minLength: 1, maxLength: 3 }))
  .map(([body, mutations]) => mutations.reduce<Buffer>((bytes, mutate) => mutate(bytes), Buffer.from(body)));
