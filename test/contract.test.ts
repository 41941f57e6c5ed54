import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ERRORS, type ErrorName, errorBody, ID_RULE } from '../src/contract/errors.ts';
import { int64FromNumberText, isInt64 } from '../src/contract/int64.ts';
import { jsonMembers } from '../src/contract/json-members.ts';
import { BODY_BYTES_MAX, HEADER_BYTES_MAX } from '../src/contract/limits.ts';
import { newPlantJson, plantJson, readNewPlant, readNewPlantText } from '../src/contract/plant.ts';

const ID_FAULT = 'id must be an integer from -9223372036854775808 to 9223372036854775807';
const NOT_JSON = 'the body is not JSON in UTF-8';
const NOT_UTF8 = 'the body is not UTF-8';
const BYTE_ORDER_MARK = 'the body begins with a byte order mark; send UTF-8 without one';
const NOT_OBJECT = 'the body must be a JSON object with id and name';

function read(body: string) {
  return readNewPlant(Buffer.from(body));
}

function assertRefused(body: string | Uint8Array, error: ErrorName, message: string): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  assert.deepEqual(readNewPlant(bytes), { error, message });
}

suite('an id is judged on its digits', () => {
  const integers: [text: string, value: bigint][] = [
    ['0', 0n],
    ['-0', 0n],
    ['-0.0', 0n],
    ['0e5', 0n],
    ['0e999999999', 0n],
    ['-0.000e-999999999', 0n],
    ['0e99999999999999999999999999', 0n],
    ['1', 1n],
    ['-1', -1n],
    ['1.0', 1n],
    ['1.000000000000000000000000000000', 1n],
    ['1e3', 1000n],
    ['1E3', 1000n],
    ['1e+3', 1000n],
    ['1e0', 1n],
    ['1e-0', 1n],
    ['1000e-3', 1n],
    ['1.5e1', 15n],
    ['-12.30e1', -123n],
    ['0.001e3', 1n],
    ['1e18', 10n ** 18n],
    ['2147483647', 2n ** 31n - 1n],
    ['2147483648', 2n ** 31n],
    ['-2147483648', -(2n ** 31n)],
    ['-2147483649', -(2n ** 31n) - 1n],
    ['4294967296', 2n ** 32n],
    ['9007199254740991', 2n ** 53n - 1n],
    ['9007199254740992', 2n ** 53n],
    ['9007199254740993', 2n ** 53n + 1n],
    ['-9007199254740993', -(2n ** 53n) - 1n],
    ['9007199254740993.0', 2n ** 53n + 1n],
    ['9.007199254740993e15', 2n ** 53n + 1n],
    ['999999999999999999', 10n ** 18n - 1n],
    ['-999999999999999999', 1n - 10n ** 18n],
    ['1000000000000000000', 10n ** 18n],
    ['9223372036854775807', 2n ** 63n - 1n],
    ['9223372036854775807.000', 2n ** 63n - 1n],
    ['9.223372036854775807e18', 2n ** 63n - 1n],
    ['92233720368547758070e-1', 2n ** 63n - 1n],
    ['-9223372036854775808', -(2n ** 63n)],
    ['-9223372036854775808e0', -(2n ** 63n)],
    [`1${'0'.repeat(1000)}e-1000`, 1n],
    [`0.${'0'.repeat(999)}1e1000`, 1n],
    [`7.${'0'.repeat(100_000)}`, 7n],
  ];
  for (const [text, value] of integers) {
    test(`${abbreviated(text)} is ${value}`, () => {
      assert.equal(int64FromNumberText(text), value);
      assert.deepEqual(read(`{"id":${text},"name":"Ipê"}`), { plant: { id: value, name: 'Ipê' } });
      // The same id in a body that is not the ordinary one.
      assert.deepEqual(read(`{"name":"Ipê","id":${text}}`), { plant: { id: value, name: 'Ipê' } });
    });
  }

  const others: [text: string, why: string][] = [
    ['0.5', 'a fraction'],
    ['-0.1', 'a fraction'],
    ['1e-1', 'a fraction'],
    ['1e-400', 'a fraction that a double takes for 0'],
    ['-1e-999999999', 'a fraction that a double takes for 0'],
    ['1.0000000000000000000001', 'a fraction that a double takes for 1'],
    ['9007199254740993.5', 'a fraction that a double takes for an even integer'],
    ['9223372036854775807.5', 'a fraction between two ids'],
    ['123e-2', 'a fraction'],
    ['9223372036854775808', 'one too large'],
    ['9223372036854775809', 'two too large'],
    ['-9223372036854775809', 'one too small'],
    ['9999999999999999999', 'too large, with as many digits as the largest'],
    ['10000000000000000000', 'too large'],
    ['18446744073709551616', 'too large: 0 when cut to 64 bits'],
    ['18446744073709551617', 'too large: 1 when cut to 64 bits'],
    ['9.223372036854775808e18', 'one too large'],
    ['1e19', 'too large'],
    ['1e400', 'too large for a double'],
    ['-1e400', 'too small for a double'],
    ['1e999999999', 'too large'],
    ['1e99999999999999999999999999', 'too large'],
    ['1e-99999999999999999999999999', 'a fraction'],
    [`1${'0'.repeat(1000)}`, 'too large'],
    [`1e${'9'.repeat(100_000)}`, 'too large'],
    ['"1"', 'a string'],
    ['""', 'a string'],
    ['null', 'null'],
    ['true', 'a boolean'],
    ['false', 'a boolean'],
    ['[]', 'an array'],
    ['[1]', 'an array'],
    ['{}', 'an object'],
    ['{"id":1}', 'an object'],
  ];
  for (const [text, why] of others) {
    test(`${abbreviated(text)} is none: ${why}`, () => {
      assert.equal(int64FromNumberText(text), undefined);
      assertRefused(`{"id":${text},"name":"Ipê"}`, 'notNewPlant', ID_FAULT);
      assertRefused(`{"name":"Ipê","id":${text}}`, 'notNewPlant', ID_FAULT);
    });
  }

  const notNumbers = ['', ' ', '-', '+1', '01', '-01', '1.', '.1', '1e', '1e+', '0x1', '1n', '1_000', 'NaN'];
  for (const text of [...notNumbers, 'Infinity', '-Infinity', '１', '٣', '1,0', '1 2', '1\n', ' 1', '--1']) {
    test(`${JSON.stringify(text)} is no number of JSON`, () => {
      assert.equal(int64FromNumberText(text), undefined);
    });
  }

  for (const text of notNumbers) {
    test(`a body with ${JSON.stringify(text)} for an id is no JSON`, () => {
      assertRefused(`{"id":${text},"name":"Ipê"}`, 'notJson', NOT_JSON);
    });
  }

  test('isInt64 holds at both ends and not beyond', () => {
    for (const inside of [-(2n ** 63n), -1n, 0n, 1n, 2n ** 63n - 1n]) assert.equal(isInt64(inside), true);
    for (const outside of [-(2n ** 63n) - 1n, 2n ** 63n, 2n ** 64n]) assert.equal(isInt64(outside), false);
  });
});

suite('name and tag', () => {
  const plants: [what: string, body: string, plant: object][] = [
    ['no tag stays no tag', '{"id":1,"name":"Ipê"}', { id: 1n, name: 'Ipê' }],
    ['an empty tag is kept', '{"id":1,"name":"Ipê","tag":""}', { id: 1n, name: 'Ipê', tag: '' }],
    ['a tag is kept', '{"id":1,"name":"Ipê","tag":"tree"}', { id: 1n, name: 'Ipê', tag: 'tree' }],
    ['an empty name is kept', '{"id":1,"name":""}', { id: 1n, name: '' }],
    ['white space is kept', '{"id":1,"name":"  a \u00a0 "}', { id: 1n, name: '  a \u00a0 ' }],
    ['U+FEFF inside a name is kept', '{"id":1,"name":"\ufeffa"}', { id: 1n, name: '\ufeffa' }],
    ['U+FFFD is a character like others', '{"id":1,"name":"\ufffd"}', { id: 1n, name: '\ufffd' }],
    [
      'composed and decomposed stay so',
      '{"id":1,"name":"\u00ea e\u0302"}',
      { id: 1n, name: '\u00ea e\u0302' },
    ],
    ['U+2028 needs no escape', '{"id":1,"name":"\u2028"}', { id: 1n, name: '\u2028' }],
    ['U+007F needs no escape', '{"id":1,"name":"\u007f"}', { id: 1n, name: '\u007f' }],
    ['a pair of surrogates as bytes', '{"id":1,"name":"🌱"}', { id: 1n, name: '🌱' }],
    ['a pair of surrogates as escapes', String.raw`{"id":1,"name":"\ud83c\uDF31"}`, { id: 1n, name: '🌱' }],
    [
      'noncharacters are characters',
      String.raw`{"id":1,"name":"\uffff\ufffe"}`,
      { id: 1n, name: '\uffff\ufffe' },
    ],
    [
      'every escape of JSON',
      String.raw`{"id":1,"name":"\"\\\/\b\f\n\r\t\u0041"}`,
      { id: 1n, name: '"\\/\b\f\n\r\tA' },
    ],
    ['the characters of JSON itself', '{"id":1,"name":"{\\"},[:"}', { id: 1n, name: '{"},[:' }],
    [
      'control characters but U+0000',
      String.raw`{"id":1,"name":"\u0001\u001f"}`,
      { id: 1n, name: '\u0001\u001f' },
    ],
  ];
  for (const [what, body, plant] of plants) {
    test(what, () => {
      assert.deepEqual(read(body), { plant });
    });
  }

  test('a plant with no tag has no member for one', () => {
    assert.equal('tag' in read('{"id":1,"name":"Ipê"}').plant!, false);
    assert.equal('tag' in read('{"name":"Ipê","id":1}').plant!, false);
  });

  test('a name of 1 MiB', () => {
    const name = 'ipê🌱'.repeat(1024 * 128);
    assert.equal(Buffer.byteLength(name), 1024 * 1024);
    assert.deepEqual(read(`{"id":1,"name":"${name}"}`), { plant: { id: 1n, name } });
    assert.deepEqual(read(`{"name":"${name}","id":1}`), { plant: { id: 1n, name } });
  });

  const notStrings = ['null', '1', '1.5', 'true', 'false', '[]', '["Ipê"]', '{}', '{"name":"Ipê"}'];
  for (const text of notStrings) {
    test(`${text} is no name and no tag`, () => {
      assertRefused(`{"id":1,"name":${text}}`, 'notNewPlant', 'name must be a string');
      assertRefused(`{"id":1,"name":"Ipê","tag":${text}}`, 'notNewPlant', 'tag must be a string');
    });
  }

  const unpaired = [
    String.raw`\ud800`,
    String.raw`\udfff`,
    String.raw`\udf31\ud83c`,
    String.raw`\ud83c\ud83c\udf31`,
    String.raw`\ud83c\n\udf31`,
    String.raw`\ud83cx`,
  ];
  for (const text of unpaired) {
    test(`${text} is no text`, () => {
      assertRefused(
        `{"id":1,"name":"${text}"}`,
        'notNewPlant',
        'name must not contain an unpaired surrogate',
      );
      const tagged = `{"id":1,"name":"Ipê","tag":"${text}"}`;
      assertRefused(tagged, 'notNewPlant', 'tag must not contain an unpaired surrogate');
    });
  }

  test('U+0000 is refused in every place of a name and a tag', () => {
    for (const text of [String.raw`\u0000`, String.raw`a\u0000`, String.raw`\u0000a`, String.raw`a\u0000b`]) {
      assertRefused(`{"id":1,"name":"${text}"}`, 'notNewPlant', 'name must not contain U+0000');
      assertRefused(`{"id":1,"name":"Ipê","tag":"${text}"}`, 'notNewPlant', 'tag must not contain U+0000');
    }
  });

  test('a body given as text follows the rules of one given as bytes', () => {
    const name = 'name must not contain an unpaired surrogate';
    const tag = 'tag must not contain an unpaired surrogate';
    assert.deepEqual(readNewPlantText('{"id":1,"name":"\ud800"}'), { error: 'notNewPlant', message: name });
    assert.deepEqual(readNewPlantText('{"id":1,"name":"","tag":"\udfff"}'), {
      error: 'notNewPlant',
      message: tag,
    });
    assert.deepEqual(readNewPlantText('{"name":"\ud800","id":1}'), { error: 'notNewPlant', message: name });
    assert.deepEqual(readNewPlantText('\ufeff{"id":1,"name":""}'), {
      error: 'notJson',
      message: BYTE_ORDER_MARK,
    });
  });
});

suite('members', () => {
  const extraMembers: [what: string, members: string][] = [
    ['an ordinary one', '"colour":"yellow"'],
    ['one that holds anything', '"x":[{"id":2,"name":null},"}",",",1e999,{}]'],
    ['the names in other cases', '"ID":"x","Name":1,"TAG":null'],
    ['the names inside another', '"x":{"id":"x","name":2,"tag":3}'],
    ['a repeated name inside another', '"x":{"a":1,"a":2}'],
    ['an empty name', '"":0'],
    ['__proto__', '"__proto__":{"tag":"inherited","id":"x"}'],
    ['constructor', '"constructor":{"prototype":{"tag":"inherited"}}'],
    ['names that objects inherit', '"toString":1,"hasOwnProperty":2,"valueOf":3'],
    ['U+0000 and an unpaired surrogate', String.raw`"\u0000":"\u0000","\ud800":"\ud800"`],
    ['a name in escapes', String.raw`"\u0069\u0064\u0020":1`],
  ];
  for (const [what, members] of extraMembers) {
    test(`further members are ignored: ${what}`, () => {
      const plant = { id: 1n, name: 'Ipê' };
      assert.deepEqual(read(`{"id":1,"name":"Ipê",${members}}`), { plant });
      assert.deepEqual(read(`{${members},"id":1,"name":"Ipê"}`), { plant });
    });
  }

  test('what a body has under __proto__ never becomes a name or a tag', () => {
    const inherited = '{"id":1,"__proto__":{"name":"Ipê","tag":"tree"}}';
    assertRefused(inherited, 'notNewPlant', 'name is required');
    assert.deepEqual(read('{"name":"a","id":1,"__proto__":{"tag":"tree"}}'), {
      plant: { id: 1n, name: 'a' },
    });
    assert.equal(({} as { tag?: string }).tag, undefined);
  });

  test('a member that all objects inherit is none of the body', () => {
    Object.defineProperty(Object.prototype, 'tag', { value: 'inherited', configurable: true });
    try {
      assert.deepEqual(Object.entries(read('{"name":"a","id":1}').plant!), [
        ['id', 1n],
        ['name', 'a'],
      ]);
    } finally {
      Reflect.deleteProperty(Object.prototype, 'tag');
    }
  });

  test('members come in any order', () => {
    const members = ['"id":1', '"name":"Ipê"', '"tag":"tree"'];
    for (const [first, second, third] of [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ] as const) {
      const body = `{${members[first]},${members[second]},${members[third]}}`;
      assert.deepEqual(read(body), { plant: { id: 1n, name: 'Ipê', tag: 'tree' } });
    }
  });

  test('names are recognised in escapes', () => {
    const body = String.raw`{"\u0069\u0064":1,"n\u0061me":"Ipê","\u0074ag":"tree"}`;
    assert.deepEqual(read(body), { plant: { id: 1n, name: 'Ipê', tag: 'tree' } });
  });

  const repeats: [body: string, shown: string][] = [
    ['{"id":1,"name":"a","id":1}', '"id"'],
    ['{"id":1,"id":2,"name":"a"}', '"id"'],
    [String.raw`{"id":1,"name":"a","\u0069d":2}`, '"id"'],
    [String.raw`{"\u0069\u0064":1,"name":"a","id":2}`, '"id"'],
    ['{"id":1,"name":"a","name":"b"}', '"name"'],
    ['{"id":1,"name":"a","tag":"b","tag":"b"}', '"tag"'],
    ['{"id":1,"name":"a","tag":"b","tag":"b","tag":"c"}', '"tag"'],
    ['{"id":1,"name":"a","x":1,"x":2}', '"x"'],
    [String.raw`{"id":1,"name":"a","x\"":1,"x\u0022":2}`, String.raw`"x\""`],
    ['{"id":1,"name":"a","":1,"":2}', '""'],
    ['{"id":1,"name":"a","__proto__":1,"__proto__":2}', '"__proto__"'],
    ['{"id":1,"name":"a","x":{"y":1},"z":[{"x":1}],"x":3}', '"x"'],
    ['{"id":1,"name":"a","x":"{\\"x\\":","x":3}', '"x"'],
  ];
  for (const [body, shown] of repeats) {
    test(`a repeated name is refused: ${body}`, () => {
      assertRefused(body, 'notNewPlant', `${shown} is given more than once`);
    });
  }

  test('a repeated name is refused even if only its last value is wrong, or only its first', () => {
    const twice = '"id" is given more than once';
    assertRefused('{"id":1,"name":"a","id":"x"}', 'notNewPlant', `${twice}; ${ID_FAULT}`);
    assertRefused('{"id":"x","name":"a","id":1}', 'notNewPlant', twice);
  });

  test('jsonMembers gives each value as it was written', () => {
    const text = '\t{ "a" : 1.50 ,\r\n"b":"\\"x,}" , "c" : [ {"d":[]} , "]" ] ,"a": {"}":{}}\n, "e":null }\n';
    assert.deepEqual(jsonMembers(text), [
      { name: 'a', valueText: '1.50' },
      { name: 'b', valueText: '"\\"x,}"' },
      { name: 'c', valueText: '[ {"d":[]} , "]" ]' },
      { name: 'a', valueText: '{"}":{}}' },
      { name: 'e', valueText: 'null' },
    ]);
    assert.deepEqual(jsonMembers(' { } '), []);
  });
});

suite('the body as JSON text', () => {
  test('white space of JSON may stand between all tokens', () => {
    for (const space of [' ', '\t', '\n', '\r', ' \t\r\n '.repeat(100)]) {
      const tokens = [
        '',
        '{',
        '"id"',
        ':',
        '1',
        ',',
        '"name"',
        ':',
        '"a"',
        ',',
        '"tag"',
        ':',
        '"b"',
        '}',
        '',
      ];
      assert.deepEqual(read(tokens.join(space)), { plant: { id: 1n, name: 'a', tag: 'b' } });
    }
  });

  const otherSpaces = [
    '\u000b',
    '\u000c',
    '\u0085',
    '\u00a0',
    '\u2028',
    '\u3000',
    '\ufeff',
    '\u0000',
    '/**/',
  ];
  for (const space of otherSpaces) {
    test(`${JSON.stringify(space)} is no white space`, () => {
      for (const body of [
        `{"id":${space}1,"name":"a"}`,
        `{"id":1${space},"name":"a"}`,
        `{"id":1,"name":"a"}${space}`,
      ]) {
        assertRefused(body, 'notJson', NOT_JSON);
      }
    });
  }

  const notJson = [
    '',
    ' ',
    'plant',
    '{',
    '}',
    '{"id":1,"name":"a"',
    '{"id":1,"name":"a"}}',
    '{"id":1,"name":"a"}{"id":2,"name":"b"}',
    '{"id":1,"name":"a"}\n{"id":2,"name":"b"}',
    '{"id":1,"name":"a"}x',
    '{"id":1,"name":"a"}\0',
    '{"id":1,"name":"a",}',
    '{,"id":1,"name":"a"}',
    '{"id":1 "name":"a"}',
    '{"id" 1,"name":"a"}',
    "{'id':1,'name':'a'}",
    '{id:1,"name":"a"}',
    '{"id":1,"name":"a}',
    '{"id":1,"name":"a\n"}',
    '{"id":1,"name":"a\t"}',
    '{"id":1,"name":"a\0"}',
    '{"id":1,"name":"a","tag":"b\n"}',
    '{"id":1,"name":"a","tag":"b\0"}',
    '{"id":1,"name":"a","tag":"b\u001f"}',
    String.raw`{"id":1,"name":"\x41"}`,
    String.raw`{"id":1,"name":"\u004"}`,
    String.raw`{"id":1,"name":"\U0041"}`,
    '{"id":1,"name":"\\',
    '{"id":1,"name":undefined}',
    'id=1&name=a',
    '<plant id="1" name="a"/>',
  ];
  for (const body of notJson) {
    test(`${JSON.stringify(body)} is no JSON`, () => {
      assertRefused(body, 'notJson', NOT_JSON);
    });
  }

  for (const body of ['null', 'true', '1', '"id"', '[]', '[{"id":1,"name":"a"}]', ' 1 ']) {
    test(`${body} is JSON but no object`, () => {
      assertRefused(body, 'notNewPlant', NOT_OBJECT);
    });
  }

  test('nesting of 500,000 neither overflows a stack nor hides what stands behind it', () => {
    const arrays = `${'['.repeat(500_000)}${']'.repeat(500_000)}`;
    const objects = `${'{"a":'.repeat(500_000)}0${'}'.repeat(500_000)}`;
    for (const deep of [arrays, objects]) {
      assert.deepEqual(read(`{"x":${deep},"id":1,"name":"a"}`), { plant: { id: 1n, name: 'a' } });
      assertRefused(`{"x":${deep},"id":1,"name":"a","id":2}`, 'notNewPlant', '"id" is given more than once');
      assertRefused(`{"id":${deep},"name":"a"}`, 'notNewPlant', ID_FAULT);
    }
    assertRefused('['.repeat(500_000), 'notJson', NOT_JSON);
    assertRefused(arrays, 'notNewPlant', NOT_OBJECT);
  });
});

suite('the body as bytes', () => {
  const plain = '{"id":1,"name":"a"}';

  test('a byte order mark is refused', () => {
    assertRefused(`\ufeff${plain}`, 'notJson', BYTE_ORDER_MARK);
    assertRefused(`\ufeff\ufeff${plain}`, 'notJson', BYTE_ORDER_MARK);
    assertRefused('\ufeff', 'notJson', BYTE_ORDER_MARK);
    assertRefused(`\ufeff{"name":"a","id":1}`, 'notJson', BYTE_ORDER_MARK);
  });

  test('UTF-16 is refused, with a byte order mark and without', () => {
    assertRefused(Buffer.from(plain, 'utf16le'), 'notJson', NOT_JSON);
    assertRefused(Buffer.from(plain, 'utf16le').swap16(), 'notJson', NOT_JSON);
    assertRefused(Buffer.from(`\ufeff${plain}`, 'utf16le'), 'notJson', NOT_UTF8);
    assertRefused(Buffer.from(`\ufeff${plain}`, 'utf16le').swap16(), 'notJson', NOT_UTF8);
  });

  // Unicode 16, section 3.9, table 3-7: the well-formed sequences; each row here is none of them.
  const illFormed: [what: string, bytes: string][] = [
    ['Latin-1', '\xea'],
    ['a continuation byte alone', '\x80'],
    ['two continuation bytes alone', '\xbf\x80'],
    ['two bytes, the second missing', '\xc3'],
    ['three bytes, the third missing', '\xe2\x82'],
    ['four bytes, the fourth missing', '\xf0\x9f\x8c'],
    ['two bytes too many for U+002F', '\xc0\xaf'],
    ['three bytes for U+002F', '\xe0\x80\xaf'],
    ['four bytes for U+002F', '\xf0\x80\x80\xaf'],
    ['two bytes for U+0000', '\xc0\x80'],
    ['two bytes for the quotation mark', '\xc0\xa2'],
    ['an overlong U+07FF', '\xe0\x9f\xbf'],
    ['an overlong U+FFFF', '\xf0\x8f\xbf\xbf'],
    ['a high surrogate', '\xed\xa0\x80'],
    ['a low surrogate', '\xed\xbf\xbf'],
    ['a pair of surrogates, three bytes each', '\xed\xa0\xbc\xed\xbc\xb1'],
    ['beyond U+10FFFF', '\xf4\x90\x80\x80'],
    ['five bytes', '\xf8\x88\x80\x80\x80'],
    ['FE', '\xfe'],
    ['FF', '\xff'],
  ];
  for (const [what, bytes] of illFormed) {
    test(`not UTF-8: ${what}`, () => {
      for (const body of [
        `{"id":1,"name":"${bytes}"}`,
        `{"id":1,"name":"a","tag":"${bytes}"}`,
        `{"id":1,"name":"a","${bytes}":0}`,
        `${plain}${bytes}`,
        `${bytes}${plain}`,
      ]) {
        assertRefused(Buffer.from(body, 'latin1'), 'notJson', NOT_UTF8);
      }
    });
  }

  test('the first and last characters of each length of UTF-8 are kept', () => {
    const name = '\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\u{10000}\u{10ffff}';
    assert.deepEqual(read(`{"id":1,"name":"${name}"}`), { plant: { id: 1n, name } });
  });

  test('bytes after those of the body in the same memory are not read', () => {
    const memory = Buffer.from(`${plain}garbage`);
    assert.deepEqual(readNewPlant(memory.subarray(0, plain.length)), { plant: { id: 1n, name: 'a' } });
  });
});

suite('the message of a refusal', () => {
  const rows: [body: string, message: string][] = [
    ['{}', 'id is required; name is required'],
    ['{"id":null,"name":null,"tag":null}', `${ID_FAULT}; name must be a string; tag must be a string`],
    ['{"tag":null}', 'id is required; name is required; tag must be a string'],
    ['{"id":"1"}', `${ID_FAULT}; name is required`],
    ['{"name":1}', 'id is required; name must be a string'],
    [
      String.raw`{"id":0.5,"name":"\u0000\ud800","tag":"\ud800\u0000"}`,
      `${ID_FAULT}; name must not contain U+0000; name must not contain an unpaired surrogate; ` +
        'tag must not contain U+0000; tag must not contain an unpaired surrogate',
    ],
    [
      '{"x":1,"y":1,"y":2,"x":2,"tag":1}',
      '"y" is given more than once; "x" is given more than once; id is required; name is required; ' +
        'tag must be a string',
    ],
  ];
  for (const [body, message] of rows) {
    test(`names every fault of ${body}`, () => {
      assertRefused(body, 'notNewPlant', message);
    });
  }

  test('shows five repeated names, each of at most 20 characters', () => {
    const long = 'n'.repeat(100_000);
    const names = [long, ...'abcdefghij'];
    const members = names.map(name => `"${name}":0,"${name}":0`).join();
    const message = [`"${'n'.repeat(20)}…"`, '"a"', '"b"', '"c"', '"d"']
      .map(name => `${name} is given more than once`)
      .join('; ');
    assertRefused(`{"id":1,"name":"x",${members}}`, 'notNewPlant', message);
  });

  test('is well-formed text when a long repeated name is cut inside a pair of surrogates', () => {
    const name = `${'n'.repeat(19)}🌱`;
    const { message } = read(`{"id":1,"name":"x","${name}":0,"${name}":0}`);
    assert.equal(message?.isWellFormed(), true);
  });

  test('repeats nothing of the body but the name of a repeated member', () => {
    const secret = 'plant_0123456789';
    for (const body of [
      `{"id":"${secret}","name":["${secret}"],"tag":{"${secret}":0}}`,
      `{"id":1,"name":"${secret}\\u0000","tag":"${secret}\\ud800"}`,
      `{"id":1,"name":"${secret}","name":"${secret}"}`,
      `{"${secret}":"${secret}"}`,
      `${secret}`,
      `{"id":1,"name":"${secret}"`,
      `"${secret}"`,
      `["${secret}"]`,
    ]) {
      const { message } = read(body);
      assert.ok(message, body);
      assert.doesNotMatch(message, /plant_|0123|undefined|null|position|SyntaxError|\[object/);
    }
  });
});

suite('writing', () => {
  const rows: [plant: { id: bigint; name: string; tag?: string }, newPlant: string, plant: string][] = [
    [{ id: 1n, name: 'Ipê' }, '{"id":1,"name":"Ipê"}', '{"name":"Ipê"}'],
    [{ id: 0n, name: '', tag: '' }, '{"id":0,"name":"","tag":""}', '{"name":"","tag":""}'],
    [{ id: 1n, name: 'a', tag: 'tree' }, '{"id":1,"name":"a","tag":"tree"}', '{"name":"a","tag":"tree"}'],
    [
      { id: 9_223_372_036_854_775_807n, name: '"\\\n🌱' },
      String.raw`{"id":9223372036854775807,"name":"\"\\\n🌱"}`,
      String.raw`{"name":"\"\\\n🌱"}`,
    ],
    [{ id: -(2n ** 63n), name: 'a' }, '{"id":-9223372036854775808,"name":"a"}', '{"name":"a"}'],
  ];
  for (const [plant, newPlantText, plantText] of rows) {
    test(newPlantText, () => {
      assert.equal(newPlantJson(plant), newPlantText);
      assert.equal(plantJson(plant), plantText);
    });
  }
});

suite('the error catalogue', () => {
  const entries = Object.entries(ERRORS) as [ErrorName, (typeof ERRORS)[ErrorName]][];

  test('a number never changes its meaning', () => {
    const numbers = Object.fromEntries(entries.map(([name, { number }]) => [name, number]));
    assert.deepEqual(numbers, {
      badHttp: 40000,
      notJson: 40001,
      notNewPlant: 40002,
      idTaken: 40003,
      noCredential: 40101,
      credentialRefused: 40102,
      noSuchPath: 40401,
      methodNotAllowed: 40501,
      tooSlow: 40801,
      bodyTooLarge: 41301,
      notJsonMediaType: 41501,
      contentEncoding: 41502,
      tooManyRequests: 42901,
      headersTooLarge: 43101,
      internal: 50001,
      busy: 50301,
      storeUnavailable: 50302,
      shuttingDown: 50303,
    });
  });

  test('numbers are unique, int32, and the status times 100 plus a counter', () => {
    const numbers = entries.map(([, { number }]) => number);
    assert.equal(new Set(numbers).size, numbers.length);
    for (const [name, { number, status }] of entries) {
      assert.equal(number | 0, number, name);
      assert.equal(Math.trunc(number / 100), status, name);
    }
  });

  test('statuses are those of HTTP errors, and numbers ascend', () => {
    let last = 0;
    for (const [name, { number, status }] of entries) {
      assert.ok(status >= 400 && status <= 599, name);
      assert.ok(number > last, `${name} stands after ${last}`);
      last = number;
    }
  });

  test('what may succeed later is what was too slow or too much, a fault of the service, and every 503', () => {
    const retried = entries.filter(([, { retry }]) => retry).map(([name]) => name);
    assert.deepEqual(retried, [
      'tooSlow',
      'tooManyRequests',
      'internal',
      'busy',
      'storeUnavailable',
      'shuttingDown',
    ]);
  });

  test('messages are one line, begin small, end without a full stop, and none is said twice', () => {
    for (const [name, { message }] of entries) assert.match(message, /^[a-z][ -~]{10,118}[^.\s]$/, name);
    const messages = new Set(entries.map(([, { message }]) => message));
    assert.equal(messages.size, entries.length);
  });

  test('limits in messages are the limits', () => {
    assert.ok(ERRORS.headersTooLarge.message.includes(`${HEADER_BYTES_MAX / 1024} KiB`));
    assert.equal(BODY_BYTES_MAX, 1_048_576);
    assert.equal(ID_RULE, 'an integer from -9223372036854775808 to 9223372036854775807');
  });

  test('errorBody has both members of the Error, with the message of the entry or another', () => {
    assert.deepEqual(errorBody('notJson'), { error: 40001, message: NOT_JSON });
    assert.deepEqual(errorBody('notJson', NOT_UTF8), { error: 40001, message: NOT_UTF8 });
  });
});

/** A text short enough for the title of a test. */
function abbreviated(text: string): string {
  return text.length <= 40 ? text : `${text.slice(0, 20)}… of ${text.length} characters`;
}
