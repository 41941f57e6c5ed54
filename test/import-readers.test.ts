import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { csvLine } from '../src/cli/csv-line.ts';
import { Failure } from '../src/cli/failure.ts';
import { csvRows } from '../src/cli/import/csv-rows.ts';
import { jsonArrayRows, jsonLinesRows } from '../src/cli/import/json-rows.ts';
import { JsonArraySplitter, JsonLinesSplitter, type JsonSplitter } from '../src/cli/import/json-values.ts';
import type { PlantRow, PlantRows } from '../src/cli/import/plant-row.ts';
import { Progress } from '../src/cli/import/progress.ts';
import { Tally } from '../src/cli/import/tally.ts';
import { NotUtf8, utf8Texts } from '../src/cli/import/utf8-texts.ts';
import { ERRORS } from '../src/contract/errors.ts';
import { type NewPlant, newPlantJson } from '../src/contract/plant.ts';

/** Text that both stores take, with much of what CSV and JSON stumble over. */
const plantText = fc.oneof(
  fc.string({ unit: 'binary' }).filter(text => !text.includes('\0')),
  fc
    .array(fc.constantFrom(',', '"', '\n', '\r', '\r\n', ' ', '\u00a0', 'e\u0301', '\ufeff', '×', '😀', 'a'))
    .map(parts => parts.join('')),
);

const newPlant: fc.Arbitrary<NewPlant> = fc
  .record({ id: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), name: plantText, tag: fc.option(plantText) })
  .map(({ id, name, tag }) => (tag === null ? { id, name } : { id, name, tag }));

/** Where a file is cut into pieces, as shares of its length. */
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 });

function cut<T extends string | Uint8Array>(whole: T, shares: number[]): T[] {
  const ends = shares.map(share => Math.floor(share * whole.length)).sort((a, b) => a - b);
  return [...ends, whole.length].map((end, index) => whole.slice(ends[index - 1] ?? 0, end) as T);
}

/** The pieces as a file is read: cut between bytes, then decoded. */
function cutTexts(text: string, shares: number[]): AsyncGenerator<string, void, undefined> {
  return utf8Texts(stream(cut(Buffer.from(text), shares)));
}

async function* stream<T>(pieces: Iterable<T>): AsyncGenerator<T, void, undefined> {
  yield* pieces;
}

async function collect<T>(all: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const each of all) collected.push(each);
  return collected;
}

async function readRows(rows: PlantRows): Promise<PlantRow[]> {
  return (await collect(rows)).flat();
}

/** All rows that come before the failure, and the failure. */
async function readUntilFailure(rows: PlantRows): Promise<{ rows: PlantRow[]; failure: Failure }> {
  const before: PlantRow[] = [];
  try {
    for await (const batch of rows) before.push(...batch);
  } catch (error) {
    assert.ok(error instanceof Failure, String(error));
    return { rows: before, failure: error };
  }
  assert.fail('the file was read to its end');
}

function plants(rows: PlantRow[]): (NewPlant | undefined)[] {
  return rows.map(({ reading }) => reading.plant);
}

function csv(text: string, notes: string[] = []): PlantRows {
  return csvRows('trees.csv', stream([text]), note => notes.push(note));
}

/** The rejects file that holds these rows, refused for one made-up reason. */
function rejectsText(rows: PlantRow[], message = 'bad, "very" bad'): string {
  return (
    (rows[0]?.rejectsHeader() ?? '') + rows.map(row => row.rejectsLine({ error: 40002, message })).join('')
  );
}

test('the time left is that of the rows that are still to be sent, also where all is read', () => {
  const tally = new Tally();
  const progress = new Progress(tally, 1000);
  try {
    progress.read(500);
    assert.doesNotMatch(progress.state(), /sent|left/);
    progress.sent(100, 200);
    assert.match(progress.state(), /^25% sent, 0 plants, .* no answer yet, /);
    tally.count('created');
    assert.match(progress.state(), /^25% sent, .* left, /);
    progress.sent(200, 200);
    progress.read(500);
    assert.match(progress.state(), /^50% sent, /);
    progress.sent(1, 10);
    assert.match(progress.state(), /^55% sent, /);
    progress.sent(10, 10);
    assert.match(progress.state(), /^100% sent, .* 0 s left, /);
  } finally {
    progress.stop();
  }
});

suite('UTF-8', () => {
  test('text is the same wherever its bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), cuts, async (text, shares) => {
        const pieces = cut(Buffer.from(`x${text}`), shares);
        assert.equal((await collect(utf8Texts(stream(pieces)))).join(''), `x${text}`);
      }),
    );
  });

  test('at a wrong byte, exactly the text before it is handed on', async () => {
    const tails = fc.constantFrom(
      [0xff],
      [0x80],
      [0xc0, 0xaf],
      [0xed, 0xa0, 0x80],
      [0xe2, 0x82, 0x41],
      [0xe2, 0x82],
    );
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), tails, cuts, async (text, tail, shares) => {
        const pieces = cut(Buffer.concat([Buffer.from(`x${text}`), Buffer.from(tail)]), shares);
        let read = '';
        await assert.rejects(async () => {
          for await (const piece of utf8Texts(stream(pieces))) read += piece;
        }, NotUtf8);
        assert.equal(read, `x${text}`);
      }),
    );
  });

  test('a byte order mark is skipped at the start and kept elsewhere', async () => {
    for (const shares of [[], [0.1], [0.1, 0.2, 0.3]]) {
      const pieces = cut(Buffer.from('\ufeffab\ufeffc'), shares);
      assert.equal((await collect(utf8Texts(stream(pieces)))).join(''), 'ab\ufeffc');
    }
  });
});

suite('CSV', () => {
  test('what csvLine writes is read back exactly, wherever the file is cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(newPlant), cuts, async (expected, shares) => {
        const lines = expected.map(({ id, name, tag }) => csvLine([tag, String(id), name]));
        const texts = cutTexts(`tag,id,name\n${lines.join('')}`, shares);
        const rows = await readRows(csvRows('trees.csv', texts, assert.fail));
        assert.deepEqual(plants(rows), expected);
        assert.deepEqual(
          rows.map(({ number }) => number),
          expected.map((_, index) => index + 1),
        );
      }),
    );
  });

  test('an unquoted empty field is absent, a quoted one is empty text', async () => {
    const rows = await readRows(csv('id,name,tag\n1,a,\n2,b,""\n3,"",\n4,,x\n'));
    assert.deepEqual(plants(rows), [
      { id: 1n, name: 'a' },
      { id: 2n, name: 'b', tag: '' },
      { id: 3n, name: '' },
      undefined,
    ]);
    assert.deepEqual(rows[3]?.reading, { error: 'notNewPlant', message: 'name is required' });
  });

  test('line ends may be CRLF or LF, in one file; empty lines are skipped; the last needs none', async () => {
    const rows = await readRows(csv('id,name\r\n1,a\r\n\r\n2,"b\r\nc\nd"\n\n3,e\rf'));
    assert.deepEqual(plants(rows), [
      { id: 1n, name: 'a' },
      { id: 2n, name: 'b\r\nc\nd' },
      { id: 3n, name: 'e\rf' },
    ]);
    assert.deepEqual(
      rows.map(({ number }) => number),
      [1, 2, 3],
    );
  });

  test('nothing is trimmed, an id neither', async () => {
    const rows = await readRows(csv('id,name\n1,  a  b \u00a0\n 2,c\n'));
    assert.equal(rows[0]?.reading.plant?.name, '  a  b \u00a0');
    assert.match(rows[1]?.reading.message ?? '', /^id must be an integer from -9223372036854775808 /);
  });

  test('a row with too few or too many fields is rejected alone', async () => {
    const rows = await readRows(csv('id,name,tag\n1,a\n2,b,c,d\n3,e,f\n'));
    assert.deepEqual(
      rows.map(({ reading }) => reading.message),
      [
        'the row has 2 fields, and the first row names 3 columns',
        'the row has 4 fields, and the first row names 3 columns',
        undefined,
      ],
    );
    assert.equal(ERRORS[rows[0]?.reading.error ?? 'internal'].number, 40002);
  });

  test('other columns are ignored and named once; those of a rejects file silently', async () => {
    const notes: string[] = [];
    const rows = await readRows(
      csv('family,id,name,row,error,message\nPinaceae,1,a,7,40002,why\nx,2,b,,,\n', notes),
    );
    assert.deepEqual(plants(rows), [
      { id: 1n, name: 'a' },
      { id: 2n, name: 'b' },
    ]);
    assert.deepEqual(notes, ['trees.csv: only id, name and tag are read; ignored: "family"']);
  });

  test('a header without id or name, or with one twice, is refused', async () => {
    for (const [text, expected] of [
      ['id;name;tag\n1;a;b\n', /must name the columns id and name.* it is: "id;name;tag"$/],
      ['ID,name\n', /it is: "ID", "name"$/],
      ['id,tag\n1,a\n', /it is: "id", "tag"$/],
      ['id,name,tag,name\n1,a,b,c\n', /the column name is there more than once/],
      ['id,id,name\n1,1,c\n', /the column id is there more than once/],
    ] as const) {
      const { rows, failure } = await readUntilFailure(csv(text));
      assert.match(failure.message, expected);
      assert.equal(rows.length, 0);
    }
  });

  test('a broken quote stops, names the line, and keeps every row before it', async () => {
    for (const [text, expected] of [
      ['id,name\n1,"a\nb"\n2,c"d\n3,e\n', /line 4 has a quote out of place/],
      ['id,name\n1,"a\nb"\n2,"c"d\n3,e\n', /line 4 has a quote out of place/],
      ['id,name\n1,"a\nb"\n2,"c\n3,d\n', /row that begins on line 4 is never closed/],
    ] as const) {
      const { rows, failure } = await readUntilFailure(csv(text));
      assert.match(failure.message, expected);
      assert.match(failure.message, /running the import again is harmless/);
      assert.deepEqual(plants(rows), [{ id: 1n, name: 'a\nb' }]);
    }
  });
});

suite('JSON', () => {
  test('the elements of an array are those of JSON.parse, wherever the file is cut', async () => {
    await fc.assert(
      fc.property(
        fc.array(fc.jsonValue()),
        fc.constantFrom('', ' ', '\t', '\r\n'),
        cuts,
        (values, indent, shares) => {
          const pieces = cut(`${indent}${JSON.stringify(values, null, indent)}\n`, shares);
          const elements = split(new JsonArraySplitter('trees.json'), pieces);
          assert.deepEqual(
            elements.map(({ text }) => JSON.parse(text)),
            JSON.parse(JSON.stringify(values)),
          );
          assert.deepEqual(
            elements.map(({ number }) => number),
            values.map((_, index) => index + 1),
          );
        },
      ),
    );
  });

  test('an element keeps its own text, JSON or not', () => {
    const elements = [
      '{ "id" :1.0e0,"name":"\\u0041 ]\\\\\\","}',
      '[[],{}]',
      '12345678901234567890.10',
      '{bad}',
      '}',
    ];
    for (const separator of [',', ' ,\n ']) {
      assert.deepEqual(
        split(new JsonArraySplitter('trees.json'), `[ ${elements.join(separator)} ]`).map(({ text }) => text),
        elements,
      );
    }
  });

  test('an array nested a million deep is one element', () => {
    const element = '['.repeat(1_000_000) + ']'.repeat(1_000_000);
    assert.deepEqual(split(new JsonArraySplitter('trees.json'), [`[${element},1]`]), [
      { number: 1, text: element },
      { number: 2, text: '1' },
    ]);
  });

  test('an array that never ends, or goes on, stops after its elements', async () => {
    const { rows, failure } = await readUntilFailure(
      jsonArrayRows('trees.json', stream(['[{"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3'])),
    );
    assert.deepEqual(plants(rows), [
      { id: 1n, name: 'a' },
      { id: 2n, name: 'b' },
    ]);
    assert.match(failure.message, /^trees\.json ends before the JSON array does, in element 3 or behind it/);

    const more = await readUntilFailure(
      jsonArrayRows('trees.json', stream(['[{"id":1,"name":"a"}] {"id":2}'])),
    );
    assert.equal(more.rows.length, 1);
    assert.match(more.failure.message, /goes on after the JSON array, behind element 1/);
  });

  test('an empty array holds nothing; a missing element is a faulty one', async () => {
    assert.deepEqual(split(new JsonArraySplitter('trees.json'), [' [ ] ']), []);
    const rows = await readRows(
      jsonArrayRows('trees.json', stream(['[{"id":1,"name":"a"},,{"id":3,"name":"c"},]'])),
    );
    assert.deepEqual(
      rows.map(({ reading }) => reading.error),
      [undefined, 'notJson', undefined, 'notJson'],
    );
  });

  test('plants come back exactly from lines and arrays, wherever the file is cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(newPlant), cuts, async (expected, shares) => {
        const texts = expected.map(newPlantJson);
        const lines = cutTexts(texts.map(text => `${text}\r\n`).join('\n'), shares);
        assert.deepEqual(plants(await readRows(jsonLinesRows('trees.jsonl', lines))), expected);
        const array = cutTexts(`[${texts.join(',\n')}]`, shares);
        assert.deepEqual(plants(await readRows(jsonArrayRows('trees.json', array))), expected);
      }),
    );
  });

  test('lines are numbered as an editor does, empty ones included', () => {
    assert.deepEqual(split(new JsonLinesSplitter('trees.jsonl'), ['{"a":1}\n\n \r\n{', '}\n[]']), [
      { number: 1, text: '{"a":1}' },
      { number: 4, text: '{}' },
      { number: 5, text: '[]' },
    ]);
  });

  test('a value of more than 64 MiB stops', () => {
    const piece = 'x'.repeat(33 * 1024 * 1024);
    assert.throws(
      () => split(new JsonLinesSplitter('trees.jsonl'), ['{}\n', piece, piece]),
      /^Failure: trees\.jsonl: line 2 is longer than 64 MiB/,
    );
    assert.throws(
      () => split(new JsonArraySplitter('trees.json'), ['[1,', piece, piece]),
      /^Failure: trees\.json: element 2 is longer than 64 MiB/,
    );
  });
});

suite('rejected rows', () => {
  test('of a CSV file are the same rows when they are imported again, and again', async () => {
    const field = fc.option(plantText, { nil: undefined });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(field, field, field, field), { minLength: 1 }), async records => {
        const kept = records.map(([id, ...rest]) => [id ?? 'x', ...rest]);
        const first = await readRows(csv(`id,name,tag,note\n${kept.map(csvLine).join('')}`));
        const firstRejects = rejectsText(first);
        const second = await readRows(csv(firstRejects));
        assert.deepEqual(
          second.map(({ reading }) => reading),
          first.map(({ reading }) => reading),
        );
        assert.equal(rejectsText(second), firstRejects);
      }),
    );
  });

  test('of a CSV file keep all columns and say why', async () => {
    const [row] = await readRows(csv('note,id,name\n"a,b",x,"say ""hi"""\n'));
    assert.equal(
      rejectsText([row!]),
      'note,id,name,row,error,message\n"a,b",x,"say ""hi""",1,40002,"bad, ""very"" bad"\n',
    );
  });

  test('with too few fields are filled up, with too many are not cut', async () => {
    const first = await readRows(csv('id,name,tag\n1,a\n2,b,c,d\n'));
    const text = rejectsText(first, 'why');
    assert.equal(text, 'id,name,tag,row,error,message\n1,a,,1,40002,why\n2,b,c,d,2,40002,why\n');
    const second = await readRows(csv(text));
    assert.equal(second[1]?.reading.error, 'notNewPlant');
    assert.equal(second[1]?.rejectsLine({ error: 40002, message: 'why' }), '2,b,c,d,2,40002,why\n');
  });

  test('of a JSON file keep their own text; a reason from before is replaced', async () => {
    for (const [text, expected] of [
      [
        '{"id":1.50, "name":"\\u0041"}',
        '{"id":1.50, "name":"\\u0041","row":1,"error":40002,"message":"why"}\n',
      ],
      ['{ }', '{ "row":1,"error":40002,"message":"why"}\n'],
      [
        '{"id":1e400,"row":7,"x":[1,{"row":2}],"error":1,"message":"old"}',
        '{"id":1e400,"x":[1,{"row":2}],"row":1,"error":40002,"message":"why"}\n',
      ],
      ['{"row":7}', '{"row":1,"error":40002,"message":"why"}\n'],
      ['{"id":1,', '{"text":"{\\"id\\":1,","row":1,"error":40002,"message":"why"}\n'],
      ['[1]', '{"text":"[1]","row":1,"error":40002,"message":"why"}\n'],
    ] as const) {
      const [row] = await readRows(jsonLinesRows('trees.jsonl', stream([text])));
      assert.equal(rejectsText([row!], 'why'), expected);
    }
    const [element] = await readRows(jsonArrayRows('trees.json', stream(['[{"id":"a",\n "name":"b"}]'])));
    assert.equal(
      rejectsText([element!], 'why'),
      '{"id":"a",  "name":"b","row":1,"error":40002,"message":"why"}\n',
    );
  });

  test('of a JSON file are the same values when they are imported again, and again', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue(), { minLength: 1 }), async values => {
        const first = await readRows(
          jsonArrayRows('trees.json', stream([JSON.stringify(values, null, '\n')])),
        );
        const firstRejects = rejectsText(first);
        const second = await readRows(jsonLinesRows('trees.jsonl', stream([firstRejects])));
        assert.deepEqual(parseLines(rejectsText(second)), parseLines(firstRejects));
        assert.equal(second.length, first.length);
      }),
    );
  });
});

function parseLines(text: string): unknown[] {
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line));
}

function split(splitter: JsonSplitter, pieces: Iterable<string>): { number: number; text: string }[] {
  return [...[...pieces].flatMap(piece => [...splitter.feed(piece)]), ...splitter.end()];
}
