import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorName } from '../../../src/core/contract/errors.ts';
import { int64FromNumberText } from '../../../src/core/contract/int64.ts';
import { readJson, readToEnd } from '../../../src/core/contract/json-reader.ts';
import {
  plantJson,
  readNewPlant,
  readNewPlantInSlices,
  readNewPlantText,
} from '../../../src/core/contract/plant.ts';

const ID_FAULT = 'id must be an integer from -9223372036854775808 to 9223372036854775807';
const QUOTED_ID_FAULT =
  'id must be a JSON number without quotes: an integer from -9223372036854775808 to 9223372036854775807';
const NOT_JSON = 'the body is empty or not valid JSON in UTF-8; use a JSON library';
const NOT_UTF8 = 'the body is not valid UTF-8; encode it as UTF-8';
const BYTE_ORDER_MARK = 'the body begins with a byte order mark; send UTF-8 without one';
/** The words of a message for members that the interface does not know. */
const OTHER = 'a member other than id, name and tag';
const NOT_OBJECT = 'the body must be a JSON object with id and name';

function read(body: string) {
  return readNewPlant(Buffer.from(body));
}

function assertRead(body: string, plant: object): void {
  assert.deepEqual(read(body), { kind: 'plant', plant }, body.slice(0, 200));
}

function assertRejected(body: string | Uint8Array, error: ErrorName, message: string): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  assert.deepEqual(readNewPlant(bytes), { kind: 'invalid', error, message }, String(body).slice(0, 200));
}

const zeros = '0'.repeat(1000);
const integers: [value: bigint, texts: string][] = [
  [0n, '0 -0 -0.0 0e5 0e999999999 -0.000e-999999999 0e99999999999999999999999999'],
  [1n, '1 1.0 1.000000000000000000000000000000 1e0 1e-0 1000e-3 0.001e3'],
  [1n, `1${zeros}e-1000 0.${zeros.slice(1)}1e1000 1.${zeros.repeat(100)}`],
  [-1n, '-1'],
  [-123n, '-12.30e1'],
  [1000n, '1e3 1E3 1e+3'],
  [2n ** 32n, '4294967296'],
  [2n ** 53n + 1n, '9007199254740993 9007199254740993.0 9.007199254740993e15'],
  [-(2n ** 53n) - 1n, '-9007199254740993'],
  [10n ** 18n - 1n, '999999999999999999'],
  [10n ** 18n, '1000000000000000000 1e18'],
  [2n ** 63n - 1n, '9223372036854775807 9223372036854775807.000 9.223372036854775807e18'],
  [2n ** 63n - 1n, '92233720368547758070e-1'],
  [-(2n ** 63n), '-9223372036854775808 -9223372036854775808e0'],
];
test('an id is read from its digits, without rounding, in every way to write an integer', () => {
  for (const [value, texts] of integers) {
    for (const text of texts.split(' ')) {
      assert.equal(int64FromNumberText(text), value, text.slice(0, 40));
      assertRead(`{"id":${text},"name":"Ipê"}`, { id: value, name: 'Ipê' });
      // The same id in a body that is not of the most common form.
      assertRead(`{"name":"Ipê","id":${text}}`, { id: value, name: 'Ipê' });
    }
  }
});

const others: Record<string, string> = {
  fractions: '0.5 -0.1 1e-1 123e-2 1e-99999999999999999999999999',
  'fractions that a double rounds to an integer':
    '1e-400 -1e-999999999 1.0000000000000000000001 9007199254740993.5 9223372036854775807.5',
  'integers beyond 64 bits': `9223372036854775808 -9223372036854775809 18446744073709551617 1e19 1${zeros}`,
  'integers beyond the range of a double': `1e400 -1e400 1e999999999 1e${'9'.repeat(100_000)}`,
  'values that are no number': 'null true false [] [1] {} {"id":1}',
};
for (const [what, texts] of Object.entries(others)) {
  test(`an id is rejected: ${what}`, () => {
    for (const text of texts.split(' ')) {
      assert.equal(int64FromNumberText(text), undefined, text.slice(0, 40));
      assertRejected(`{"id":${text},"name":"Ipê"}`, 'notNewPlant', ID_FAULT);
      assertRejected(`{"name":"Ipê","id":${text}}`, 'notNewPlant', ID_FAULT);
    }
  });
}

test('an id is rejected: strings, with a message about the quotes', () => {
  for (const text of ['"1"', '""', '"9007199254740993"']) {
    assert.equal(int64FromNumberText(text), undefined, text);
    assertRejected(`{"id":${text},"name":"Ipê"}`, 'notNewPlant', QUOTED_ID_FAULT);
    assertRejected(`{"name":"Ipê","id":${text}}`, 'notNewPlant', QUOTED_ID_FAULT);
  }
});

test('name and tag are read without a change', () => {
  const members: [members: string, plant: { name: string; tag?: string }][] = [
    ['"name":"","tag":""', { name: '', tag: '' }],
    ['"name":"\ufeff  a \u00a0\ufffd\u2028\u007f"', { name: '\ufeff  a \u00a0\ufffd\u2028\u007f' }],
    // Neither form is normalized.
    ['"name":"\u00ea e\u0302"', { name: '\u00ea e\u0302' }],
    [String.raw`"name":"\ud83c\uDF31\uffff"`, { name: '🌱\uffff' }],
    [String.raw`"name":"\"\\\/\b\f\n\r\t\u0041\u0001"`, { name: '"\\/\b\f\n\r\tA\u0001' }],
    ['"name":"{\\"},[:"', { name: '{"},[:' }],
    // The first and last characters of each length of UTF-8.
    ...['\u0080\u07ff\u0800\ud7ff\ue000\uffff\u{10000}\u{10ffff}', 'ipê🌱'.repeat(1024 * 128)].map(
      name => [`"name":"${name}"`, { name }] as [string, { name: string }],
    ),
  ];
  for (const [text, plant] of members) {
    assertRead(`{"id":1,${text}}`, { id: 1n, ...plant });
    assertRead(`{${text},"id":1}`, { id: 1n, ...plant });
    assert.deepEqual(JSON.parse(plantJson(plant)), plant, 'the response repeats them');
  }
  // deepEqual does not distinguish an absent member from an undefined one.
  for (const body of ['{"id":1,"name":"Ipê"}', '{"name":"Ipê","id":1}']) {
    const reading = read(body);
    assert.ok(reading.kind === 'plant' && !('tag' in reading.plant));
  }
});

const faults: [fault: string, texts: string[]][] = [
  ['must be a string', 'null 1 1.5 true false [] ["Ipê"] {} {"name":"Ipê"}'.split(' ')],
  [
    'must not contain an unpaired surrogate',
    String.raw`"\ud800" "\udfff" "\udf31\ud83c" "\ud83c\ud83c\udf31" "\ud83c\n\udf31" "\ud83cx"`.split(' '),
  ],
  ['must not contain U+0000', String.raw`"\u0000" "a\u0000" "\u0000a" "a\u0000b"`.split(' ')],
];
for (const [fault, texts] of faults) {
  test(`name and tag ${fault}`, () => {
    for (const text of texts) {
      assertRejected(`{"id":1,"name":${text}}`, 'notNewPlant', `name ${fault}`);
      assertRejected(`{"id":1,"name":"Ipê","tag":${text}}`, 'notNewPlant', `tag ${fault}`);
    }
  });
}

test('name and tag in a body that is given as text follow the same rules', () => {
  const name = 'name must not contain an unpaired surrogate';
  const tag = 'tag must not contain an unpaired surrogate';
  for (const [body, error, message] of [
    ['{"id":1,"name":"\ud800"}', 'notNewPlant', name],
    ['{"name":"\ud800","id":1}', 'notNewPlant', name],
    ['{"id":1,"name":"","tag":"\udfff"}', 'notNewPlant', tag],
    ['\ufeff{"id":1,"name":""}', 'notJson', BYTE_ORDER_MARK],
  ] as const)
    assert.deepEqual(readNewPlantText(body), { kind: 'invalid', error, message });
});

test('unknown members are ignored, before and after the others', () => {
  for (const members of [
    '"x":[{"id":2,"name":null},"}",",",1e999,{}]',
    '"ID":"x","Name":1,"TAG":null',
    '"x":{"a":1,"a":2}',
    '"__proto__":{"tag":"inherited","id":"x"}',
    '"constructor":1,"hasOwnProperty":2',
    String.raw`"\u0000":"\u0000","\ud800":"\ud800","":0`,
  ]) {
    assertRead(`{"id":1,"name":"Ipê",${members}}`, { id: 1n, name: 'Ipê' });
    assertRead(`{${members},"id":1,"name":"Ipê"}`, { id: 1n, name: 'Ipê' });
  }
});

test('repeated members are rejected', () => {
  const repeats: [body: string, shown: string, others?: string][] = [
    ['{"id":1,"id":2,"name":"a"}', '"id"'],
    [String.raw`{"id":1,"name":"a","\u0069d":2}`, '"id"'],
    ['{"id":1,"name":"a","tag":"b","tag":"b","tag":"c"}', '"tag"'],
    [String.raw`{"id":1,"name":"a","x\"":1,"x\u0022":2}`, OTHER],
    ['{"id":1,"name":"a","":1,"":2}', OTHER],
    ['{"id":1,"name":"a","__proto__":1,"__proto__":2}', OTHER],
    ['{"id":1,"name":"a","x":{"y":1},"z":[{"x":1}],"x":3}', OTHER],
    ['{"id":1,"name":"a","x":"{\\"x\\":","x":3}', OTHER],
    ['{"id":1,"name":"a","id":"x"}', '"id"', `; ${QUOTED_ID_FAULT}`],
    ['{"id":"x","name":"a","id":1}', '"id"'],
  ];
  for (const [body, shown, others = ''] of repeats)
    assertRejected(body, 'notNewPlant', `${shown} is given more than once${others}`);
});

const plain = '{"id":1,"name":"a"}';

test('the body is a JSON object', () => {
  const notJson = [
    `${plain}}`,
    `${plain}\u00a0`,
    '',
    '{',
    'id=1&name=a',
    '['.repeat(500_000),
    `${plain}/**/`,
  ];
  for (const body of notJson) assertRejected(body, 'notJson', NOT_JSON);
  for (const body of ['null', '1', '"id"', '[]', `[${plain}]`])
    assertRejected(body, 'notNewPlant', NOT_OBJECT);
});

test('the body may nest 500,000 deep: the stack does not overflow, and what follows is read', () => {
  const arrays = `${'['.repeat(500_000)}${']'.repeat(500_000)}`;
  const objects = `${'{"a":'.repeat(500_000)}0${'}'.repeat(500_000)}`;
  for (const deep of [arrays, objects]) {
    assertRead(`{"x":${deep},"id":1,"name":"a"}`, { id: 1n, name: 'a' });
    const twice = '"id" is given more than once';
    assertRejected(`{"x":${deep},"id":1,"name":"a","id":2}`, 'notNewPlant', twice);
    assertRejected(`{"id":${deep},"name":"a"}`, 'notNewPlant', ID_FAULT);
  }
  assertRejected(arrays, 'notNewPlant', NOT_OBJECT);
});

test('the body is read in slices of a few thousand characters, whatever its content', () => {
  const elements = '0,'.repeat(20_000);
  const names = Array.from({ length: 20_000 }, (_, index) => `"${index}":0`).join();
  for (const members of [
    names,
    `"x":{${names}}`,
    `"x":[${elements}0]`,
    `"x":${'['.repeat(50_000)}${']'.repeat(50_000)}`,
    `"x":[${'"a\\n", '.repeat(20_000)}0]`,
  ]) {
    const body = `{"id":1,${members},"name":"a"}`;
    const slices = readNewPlantInSlices(Buffer.from(body));
    let pauses = 0;
    let slice = slices.next();
    for (; !slice.done; slice = slices.next()) pauses++;
    assert.deepEqual(slice.value, { kind: 'plant', plant: { id: 1n, name: 'a' } });
    assert.ok(pauses > body.length / 5_000, `${pauses} in ${body.length}`);
  }
});

test('the body takes one byte for each level of nesting: a list would be copied as it grows, without a pause', () => {
  const text = '['.repeat(8_000_000);
  const heapBefore = process.memoryUsage().heapUsed;
  assert.equal(readToEnd(readJson(text, () => {})), text.length);
  const grownMiB = (process.memoryUsage().heapUsed - heapBefore) / 1024 / 1024;
  assert.ok(grownMiB < 32, `${grownMiB} MiB`);
});

test('the body has no byte order mark, and is not UTF-16', () => {
  for (const body of [`\ufeff${plain}`, `\ufeff\ufeff${plain}`, '\ufeff', '\ufeff{"name":"a","id":1}'])
    assertRejected(body, 'notJson', BYTE_ORDER_MARK);
  for (const [body, message] of [
    [plain, NOT_JSON],
    [`\ufeff${plain}`, NOT_UTF8],
  ] as const) {
    assertRejected(Buffer.from(body, 'utf16le'), 'notJson', message);
    assertRejected(Buffer.from(body, 'utf16le').swap16(), 'notJson', message);
  }
});

test('the body is well-formed UTF-8', () => {
  // Latin-1, and ill-formed by Unicode 16, section 3.9, table 3-7.
  for (const sequence of ['ea', '80', 'c3', 'f09f8c', 'c0af', 'eda080', 'f4908080', 'ff']) {
    const bytes = Buffer.from(sequence, 'hex').toString('latin1');
    assertRejected(Buffer.from(`{"id":1,"name":"${bytes}"}`, 'latin1'), 'notJson', NOT_UTF8);
  }
});

test('the message of a rejection lists every fault', () => {
  const rows: [body: string, message: string][] = [
    ['{}', 'id is required; name is required'],
    ['{"id":null,"name":null,"tag":null}', `${ID_FAULT}; name must be a string; tag must be a string`],
    ['{"name":1}', 'id is required; name must be a string'],
    [
      String.raw`{"id":0.5,"name":"\u0000\ud800","tag":"\ud800\u0000"}`,
      `${ID_FAULT}; name must not contain U+0000; name must not contain an unpaired surrogate; ` +
        'tag must not contain U+0000; tag must not contain an unpaired surrogate',
    ],
    [
      '{"x":1,"y":1,"y":2,"tag":2,"tag":1,"x":2}',
      `${OTHER} is given more than once; "tag" is given more than once; id is required; name is required; ` +
        'tag must be a string',
    ],
  ];
  for (const [body, message] of rows) assertRejected(body, 'notNewPlant', message);
});
