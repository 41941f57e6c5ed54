import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { Failure } from '../../../src/cli/shared/failure.ts';
import { type NewPlant, newPlantJson } from '../../../src/core/contract/plant.ts';
import { csvLine } from '../../../src/formats/csv.ts';
import { csvRows } from '../../../tools/import/csv/csv-rows.ts';
import { jsonLinesRows } from '../../../tools/import/json/json-lines.ts';
import { jsonListRows } from '../../../tools/import/json/json-list.ts';
import { jsonRow, type Place } from '../../../tools/import/json/json-row.ts';
import { Progress } from '../../../tools/import/progress.ts';
import { type PlantRow, readNames } from '../../../tools/import/rows/plant-row.ts';
import { bytesOfText, utf8Texts } from '../../../tools/import/text/utf8-texts.ts';

type Texts = AsyncGenerator<string, void, undefined>;
type Format = 'CSV' | 'lines' | 'array' | 'object';

/** The rows and notes of a file, and the message if reading ended early. */
interface Read {
  rows: PlantRow[];
  notes: string[];
  failure: string | undefined;
}

async function* stream<T>(chunks: Iterable<T>): AsyncGenerator<T, void, undefined> {
  yield* chunks;
}

const rowOf = (place: Place, text: string): PlantRow => jsonRow(place, text, { form: {} });

async function* listRows(name: string, texts: Texts): AsyncGenerator<PlantRow[]> {
  yield* jsonListRows(name, texts, 1, new Set(readNames({ form: {} })), () => rowOf);
}

async function readTexts(format: Format, texts: Texts, start: string): Promise<Read> {
  const read: Read = { rows: [], notes: [], failure: undefined };
  const batches =
    format === 'CSV'
      ? csvRows('trees', texts, start, { form: {}, onNote: note => read.notes.push(note) })
      : { lines: jsonLinesRows, array: listRows, object: listRows }[format]('trees', texts, 1, rowOf);
  try {
    for await (const rows of batches) read.rows.push(...rows);
  } catch (error) {
    assert.ok(error instanceof Failure, String(error));
    read.failure = error.message;
  }
  return read;
}

/** The borders between the chunks of a file, as shares of its length. */
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 });

function cut(whole: Buffer, shares: number[]): Buffer[] {
  const ends = shares.map(share => Math.floor(share * whole.length)).sort((a, b) => a - b);
  return [...ends, whole.length].map((end, index) => whole.subarray(ends[index - 1] ?? 0, end));
}

/** Reads a text like a file: it is cut between bytes, then decoded. U+DC80 to U+DCFF are invalid bytes. */
async function read(format: Format, text: string, shares: number[] = []): Promise<Read> {
  return await readTexts(format, utf8Texts(stream(cut(bytesOfText(text), shares))), text);
}

function plantOf({ reading }: PlantRow): NewPlant | undefined {
  return reading.kind === 'plant' ? reading.plant : undefined;
}

/** Why a row has no plant. */
function messageOf({ reading }: PlantRow): string | undefined {
  return reading.kind === 'invalid' ? reading.message : undefined;
}

/** The rejects file of these rows. @param reason undefined: the reason of each row */
function rejectsOf(rows: PlantRow[], reason?: string): string {
  const lines = rows.map(row => row.rejectsLine({ error: 40002, message: reason ?? messageOf(row)! }));
  return rows[0]!.rejectsFormat.header + lines.join('');
}

/** Text that both stores accept, often with special characters of CSV and JSON. */
const plantText = fc.oneof(
  fc.string({ unit: 'binary' }).filter(text => !text.includes('\0')),
  fc
    .array(fc.constantFrom(',', '"', '\n', '\r', '\r\n', ' ', '\u00a0', 'e\u0301', '\ufeff', '×', '😀', 'a'))
    .map(parts => parts.join('')),
);

const newPlant: fc.Arbitrary<NewPlant> = fc
  .record({ id: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), name: plantText, tag: fc.option(plantText) })
  .map(({ id, name, tag }) => (tag === null ? { id, name } : { id, name, tag }));

test('the time left counts the rows that are not yet sent, also if all are read', () => {
  using progress = new Progress(1000);
  progress.read(500);
  for (let rowsLeft = 200; rowsLeft > 100; rowsLeft--) progress.sent(rowsLeft);
  assert.match(progress.state(), /^25% sent, no response yet: 0 created, /);
  for (let rowsLeft = 100; rowsLeft > 0; rowsLeft--) progress.sent(rowsLeft);
  progress.count('created');
  progress.read(500);
  assert.match(progress.state(), /^50% sent, .* left: 1 created, /);
  progress.sent(10);
  assert.match(progress.state(), /^55% sent, /);
});

test('text is exact and no byte is lost, wherever the bytes are cut and whichever are invalid', async () => {
  const parts = [
    [0xff],
    [0x80],
    [0xc0, 0xaf],
    [0xed, 0xa0, 0x80],
    [0xe2, 0x82, 0x41],
    [0xe2, 0x82],
    [0xf4, 0x90],
  ];
  const part = fc.oneof(
    fc.string({ unit: 'binary' }).map(text => Buffer.from(text)),
    fc.constantFrom(...parts).map(bytes => Buffer.from(bytes)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(part), cuts, async (given, shares) => {
      const bytes = Buffer.concat([Buffer.from('x'), ...given]);
      const texts = await Array.fromAsync(utf8Texts(stream(cut(bytes, shares))));
      const decoded = texts.join('');
      assert.equal(decoded.isWellFormed(), isUtf8(bytes));
      if (isUtf8(bytes)) assert.equal(decoded, bytes.toString());
      assert.deepEqual(bytesOfText(decoded), bytes);
    }),
  );
});

suite('files of plants', () => {
  test('are read exactly, wherever they are cut and whatever other values they contain', async () => {
    const row = fc.tuple(newPlant, fc.jsonValue(), fc.constantFrom('', '\t', '\r\n'));
    await fc.assert(
      fc.asyncProperty(fc.array(row), cuts, async (given, shares) => {
        const expected = given.map(([plant]) => plant);
        const lines = expected.map(({ id, name, tag }) => csvLine([tag, String(id), name]));
        const values = given.map(
          ([plant, more]) => `${newPlantJson(plant).slice(0, -1)},"more":${JSON.stringify(more)}}`,
        );
        const spaced = given.map(([, more, indent], index) =>
          values[index]!.replace(
            /"more":.*/s,
            () => `"more":${JSON.stringify(more, null, indent)}${indent}}`,
          ),
        );
        const files: [Format, string, number][] = [
          ['CSV', `tag,id,name\n${lines.join('')}`, 1],
          // Empty lines are counted, as an editor does.
          ['lines', values.map(text => `${text}\r\n`).join('\n'), 2],
          ['array', ` [${spaced.join(' ,\n')} ]\n`, 1],
          [
            'object',
            `{"]": [ ] ,"[{\\"":{"x":[{}]},\n"list" : [ ${spaced.join(' ,\n')} ], "n":[1,"{"]}\n`,
            1,
          ],
        ];
        for (const [format, text, step] of files) {
          const file = await read(format, text, shares);
          assert.deepEqual([file.notes, file.failure], [[], undefined]);
          assert.deepEqual(
            file.rows.map(row => [row.number, plantOf(row)]),
            expected.map((plant, index) => [index * step + 1, plant]),
          );
        }
      }),
    );
  });

  interface Case {
    what: string;
    format: Format;
    text: string;
    /** For each row: the plant as JSON, or the reason of its rejection. */
    rows: (string | RegExp)[];
    failure?: RegExp;
    notes?: string[];
  }
  const A = '{"id":1,"name":"a"}';
  const B = '{"id":2,"name":"b"}';
  const CASES: Case[] = [
    {
      what: 'an unquoted empty field is absent, a quoted one is empty text',
      format: 'CSV',
      text: 'id,name,tag\n1,a,\n2,b,""\n3,"",\n4,,x\n',
      rows: [A, '{"id":2,"name":"b","tag":""}', '{"id":3,"name":""}', /^name is required$/],
    },
    {
      what: 'line ends may be CRLF, LF or CR, in one file; empty lines are skipped; the last needs none',
      format: 'CSV',
      text: 'id,name\r\n1,a\r\n\r\n2,"b\r\nc\nd\re"\n\n3,e\r\r4,f\r5,"\rg"',
      rows: [
        ...[A, '{"id":2,"name":"b\\r\\nc\\nd\\re"}', '{"id":3,"name":"e"}'],
        ...['{"id":4,"name":"f"}', '{"id":5,"name":"\\rg"}'],
      ],
    },
    {
      what: 'names of columns match in any case, with blanks around them',
      format: 'CSV',
      text: 'ID\t, Name,"TAG "\n1,a,b\n',
      rows: ['{"id":1,"name":"a","tag":"b"}'],
    },
    ...[
      'id;name;note, long\n1;a;\n2;b;x\n',
      'note, long;x\t"name"\t"id"\n\ta\t1\nx\tb\t2\n',
      '"sep=;"\r\nid;name;note, long\r\n1;a;\r\n2;b;x\r\n',
    ].map(
      (text): Case => ({
        what: 'semicolon and tab are found in the header, or in the line that Excel reads',
        format: 'CSV',
        text,
        rows: [A, B],
        notes: [`trees: only id, name and tag are read; ignored: "note, long${text[0] === 'n' ? ';x' : ''}"`],
      }),
    ),
    {
      what: 'a row with too few or too many fields is rejected alone; a spreadsheet adds empty ones',
      format: 'CSV',
      text: 'id,name\n1,a,,\n2,b,,""\n3\n2,b\n',
      rows: [A, /^the row has 4 fields, but the first row names 2 columns$/, /^the row has 1 field, but/, B],
    },
    {
      what: 'nothing is trimmed, not even an id',
      format: 'CSV',
      text: 'id,name\n1,  a  b \u00a0\n 2,c\n',
      rows: ['{"id":1,"name":"  a  b \u00a0"}', /^id " 2" has a blank before or after it; remove/],
    },
    {
      what: 'an id that a spreadsheet has rounded is rejected',
      format: 'CSV',
      text: 'id,name\n9.00719925474099E+15,a\n1e3,b\n',
      rows: [/^id "9\.00719925474099E\+15" has an exponent/, /^id "1e3" has an exponent/],
    },
    {
      what: 'other columns are ignored and named once; columns of a rejects file are not named',
      format: 'CSV',
      text: 'family\u009b2J,id,name,line,row,error,message\nPinaceae,1,a,8,7,40002,why\nx,2,b,,,,\n',
      rows: [A, B],
      notes: ['trees: only id, name and tag are read; ignored: "family\\u009b2J"'],
    },
    ...(
      [
        [
          'id|name\n1|a\n',
          /must name the columns id, name and .* it is: "id\|name"; rename a column, or see --/,
        ],
        ['id;tag\n1;a\n', /it is: "id", "tag"; rename a column, or see --columns and --delimiter in --help$/],
        [
          'name,tag\na,b\n',
          /^trees: the column id is missing; .* must name the columns id, name and optionally .*; for a list without ids, see --id-from and --number-from$/,
        ],
        [
          'Id, NAME , Tags\n1,a,b\n',
          /^trees: the column "Tags" is not known, .* use --columns tag=Tags if .*, or --columns tag= to leave it out$/,
        ],
        [
          'id\tna"me\n1\ta\n',
          /^trees, first row: .* misplaced quote; .*; if quotes are text .* --quotes off$/,
        ],
        ['id,na"me\n', /^trees, first row: the row has a misplaced quote/],
        ['id,ID ,name\n', /the column id exists more than once/],
        ['id,name,tag,name\n1,a,b,c\n', /the column name exists more than once/],
      ] as const
    ).map(
      ([text, failure]): Case => ({ what: `a header is rejected`, format: 'CSV', text, rows: [], failure }),
    ),
    {
      what: 'quotes in pairs after a word are text',
      format: 'CSV',
      text: 'id,name,tag\n1,Acer var. "Nana" x "B",\n2,5" x 7","c"\n3,(é) "d","""e"" f"\n',
      rows: [
        ...['{"id":1,"name":"Acer var. \\"Nana\\" x \\"B\\""}', '{"id":2,"name":"5\\" x 7\\"","tag":"c"}'],
        '{"id":3,"name":"(é) \\"d\\"","tag":"\\"e\\" f"}',
      ],
    },
    {
      what: 'a row with another misplaced quote is rejected alone',
      format: 'CSV',
      text:
        'id,name,tag\n1,12" pot,\n2,a "b, c"\n3, "d",\n4,="e",\n5,f ""g"",\n6,"h" i,\n' +
        '7,"j" k,"l\r\n7,m,n\n"\n8,"o"\0,p\r9,s,t\n10,"u\n11,v,w\n',
      rows: [
        ...Array.from({ length: 8 }, () => /^the row has a misplaced quote/),
        ...[
          '{"id":9,"name":"s","tag":"t"}',
          /^the row has a quote that is never closed: it begins in line 13, and takes 2 lines; write each /,
        ],
      ],
    },
    {
      what: 'a row with more fields than a spreadsheet has stops the reading',
      format: 'CSV',
      text: `id,name\n1,a${','.repeat(16_382)}\n\n2,b${','.repeat(16_383)}`,
      rows: [A],
      failure: /^trees: line 4 \(row 2\) has more than 16384 fields; check its line end$/,
    },
    {
      what: 'a tag can be null and an id can be text, but neither anything else',
      format: 'lines',
      text: [
        '{"id":"9223372036854775807","name":"a","tag":null}',
        ...['{"id":"1","tag": null ,"name":"a"}', '{"id":"01","name":"a"}', '{"id":"1.0","name":"a"}'],
        ...['{"id":"","name":"a"}', '{"id":1,"name":null,"tag":null}', '{"id":1,"name":"a","tag":0}'],
      ].join('\n'),
      rows: [
        ...[
          '{"id":9223372036854775807,"name":"a"}',
          A,
          /^id "01" has a leading zero; remove it, or give the/,
        ],
        ...[/^id "1\.0" has a fraction; write an integer$/, /^id "" is empty; write an integer in digits$/],
        ...[/^name null is not a text; write a text/, /^tag 0 is not a text/],
      ],
    },
    {
      what: 'the fault of an id that is text comes before other faults',
      format: 'lines',
      text: [
        ...['{"name":0,"id":"0012"}', '{"id":"1e3","id":2,"name":"a"}', '{"id":"-0","name":"a"}'],
        ...['{"id":"9223372036854775808","name":"a"}', '{"id":null,"name":"a"}'],
      ].join('\n'),
      rows: [
        ...[
          /^id "0012" has a leading zero; .*; name 0 is not a text; /,
          /^id "1e3" has .*; "id" is given more/,
        ],
        ...[/^id "-0" has a sign, but 0 has none; write 0$/, /^id "9223372036854775808" is above /],
        /^id null must be an integer from /,
      ],
    },
    {
      what: 'an element that is not JSON does not affect the others',
      format: 'array',
      text: `[${A},{bad}, } ,"]",[[],{}],${B},,]`,
      rows: [A, /valid JSON/, /valid JSON/, /JSON object/, /JSON object/, B, /valid JSON/, /valid JSON/],
    },
    {
      what: 'text after an array stops the reading',
      format: 'array',
      text: `[${A}] {"id":2}`,
      rows: [A],
      failure: /has text after the end of the JSON array, after element 1/,
    },
    {
      what: 'an array with a nesting depth of a million is one element',
      format: 'array',
      text: `[${'['.repeat(1e6)}${']'.repeat(1e6)},${A}]`,
      rows: [/JSON object|not valid JSON/, A],
    },
  ];
  for (const { what, format, text, rows, failure, notes = [] } of CASES) {
    test(`${what}: ${JSON.stringify(text.slice(0, 60))}`, async () => {
      const file = await read(format, text);
      assert.equal(file.rows.length, rows.length);
      for (const [index, expected] of rows.entries()) {
        const row = file.rows[index]!;
        const plant = plantOf(row);
        if (typeof expected === 'string') assert.equal(plant && newPlantJson(plant), expected);
        else assert.match(plant ? newPlantJson(plant) : messageOf(row)!, expected);
      }
      assert.deepEqual(file.notes, notes);
      if (failure === undefined) assert.equal(file.failure, undefined);
      else assert.match(file.failure ?? '', failure);
    });
  }

  test('stop at a row of more than 64 MiB, after the rows before it', async () => {
    const chunk = 'x'.repeat(33 * 1024 * 1024);
    const files: [Format, string, string, string][] = [
      ['CSV', 'id,name\n1,a\n2,"\n', 'line 3 \\(row 2\\)', ': it begins in line 3, and takes 2 lines'],
      ['CSV', 'id\tname\n1\ta\n2\t"', 'line 3 \\(row 2\\)', ''],
      ['array', `[${A},`, 'element 2', ' or bracket'],
    ];
    for (const [format, start, row, end] of files) {
      const file = await readTexts(format, stream([start, chunk, chunk]), start);
      assert.match(
        file.failure ?? '',
        new RegExp(`^trees: ${row} is longer than 64 MiB; check it for an unclosed quote${end}$`),
      );
      assert.equal(file.rows.length, 1);
    }
  });
});

suite('rejected rows', () => {
  const INVALID = '\udce9';

  test('stay rejected for the same reason until they are changed', async () => {
    const csvPart = fc.constantFrom(
      '1',
      'a',
      '7 "b"',
      '"c\n"',
      '"',
      '""',
      ',',
      ',',
      '\n',
      '\r\n',
      '\r',
      ' ',
      INVALID,
    );
    const jsonPart = fc.constantFrom(
      ...['"id":1', '"name":"a"', '"text":""', '"text":1,"line":1,"row":1,"error":1,"message":""', 'null'],
      ...[',', '{', '}', '\\', '"', '\n', `"name":"${INVALID}"`, INVALID],
    );
    await fc.assert(
      fc.asyncProperty(fc.array(csvPart), fc.array(jsonPart), cuts, async (csvParts, jsonParts, shares) => {
        const files = {
          CSV: `id,name,tag,note\n1,a\n${csvParts.join('')}`,
          lines: `{"id":1}\n${jsonParts.join('')}`,
        };
        for (const [format, text] of Object.entries(files) as [Format, string][]) {
          const { rows } = await read(format, text, shares);
          const rejected = rows.filter(row => plantOf(row) === undefined);
          const messages = rejected.map(messageOf);
          for (let round = 1, again = rejected; round <= 2 && rejected.length > 0; round++) {
            again = (await read(format, rejectsOf(again))).rows;
            assert.deepEqual(again.map(messageOf), messages);
          }
        }
      }),
      { numRuns: 1000 },
    );
  });

  const REASON = '"line":1,"row":1,"error":40002,"message":"why"}\n';
  const CASES: [string, Format, string, string][] = [
    [
      'with missing fields get empty ones, excess fields follow the reason',
      'CSV',
      'id,name,tag\n1,a\n2,b,c,d\n',
      'id,name,tag,line,row,error,message\n1,a,,2,1,fields 2,why\n2,b,c,3,2,fields 4,why,d\n',
    ],
    [
      'of a rejects file with excess fields do not lose them',
      'CSV',
      'id,name,tag,line,row,error,message\n2,b,c,8,7,40002,old,d\n2,b,c,d,3,2,40002,old\n',
      'id,name,tag,line,row,error,message\n2,b,c,2,1,fields 4,why,d\n2,b,c,3,2,fields 8,why,d,3,2,40002,old\n',
    ],
    [
      'of a rejects file that a spreadsheet has written',
      'CSV',
      'id;name;line;row;error;message;\n2;b;8;7;40002;old;d\nx;c;9;8;40002;old;\n',
      'id,name,line,row,error,message\n2,b,2,1,fields 3,why,d\nx,c,3,2,40002,why,\n',
    ],
    [
      'of JSON have their exact text',
      'lines',
      '{"id":1.50, "name":"\\u0041"}',
      `{"id":1.50,"name":"\\u0041",${REASON}`,
    ],
    [
      'have only their last reason',
      'lines',
      '{"id":1e400,"row":7,"x":[1,{"row":2}],"error":1,"message":"old"}',
      `{"id":1e400,"x":[1,{"row":2}],${REASON}`,
    ],
    ['are not JSON', 'lines', '{"id":1,', `{"text":"{\\"id\\":1,",${REASON}`],
    [
      'span several lines',
      'array',
      '[{"id":"a",\n "name":["b",\n  1]}]',
      `{"id":"a","name":["b",   1],${REASON}`,
    ],
  ];
  for (const [what, format, text, expected] of CASES) {
    test(what, async () => {
      assert.equal(rejectsOf((await read(format, text)).rows, 'why'), expected);
    });
  }
});
