import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { commandProcess } from '../../harness/command-lines.ts';
import { startTestService } from '../../harness/running-service.ts';
import { HAS_TERMINAL, shownOnTerminal } from '../../harness/terminal.ts';
import { testFolder } from '../../harness/test-folder.ts';

/** A file, and what a dry run prints about it: the counts that are not 0, and other lines. */
interface Case {
  what: string;
  content: string | Uint8Array;
  args?: string[];
  rows: number;
  rejected?: RegExp[];
  lineBreaks?: RegExp[];
  faulty?: RegExp;
  notes?: RegExp[];
}

function latin1(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

/** Four rows of a format that never quotes. As quoted fields, the first three are one row. */
const UNQUOTED = 'id\tname\tlocality\n1\tAcer\t"north\n2\tRosa\tsouth\n3\tPoa\teast"\n4\tFagus\twest\n';
const QUOTED = 'id\tname\n1\t"Acer ""Nana"""\n2\t"Rosa\tx"\n3\t"Poa\nannua"\n';
const IGNORED = /: only id, name and tag are read; ignored: "locality"$/;

const CASES: Case[] = [
  ...['\n', '\r\n', '\r'].map(
    (lineEnd): Case => ({
      what: `quotes of a tab-separated file that never quotes are text (${JSON.stringify(lineEnd)})`,
      content: UNQUOTED.replaceAll('\n', lineEnd),
      rows: 4,
      notes: [IGNORED, /: line 2 has a quote that its line does not close, so .*; .*use --quotes on$/],
    }),
  ),
  { what: 'quotes are text', content: UNQUOTED, args: ['--quotes', 'off'], rows: 4, notes: [IGNORED] },
  {
    what: 'quotes enclose fields of tabs, and an ignored column has a line break',
    content: UNQUOTED,
    args: ['--quotes', 'on'],
    rows: 2,
    lineBreaks: [/line 2 \(row 1\): "locality" is "north\\n2\\tRosa\\tsouth\\n3\\tPoa\\teast"$/],
    notes: [IGNORED],
  },
  {
    what: 'an ignored column of commas has a line break',
    content: UNQUOTED.replaceAll('\t', ','),
    rows: 2,
    lineBreaks: [/line 2 \(row 1\): "locality" is "north\\n2,Rosa,south\\n3,Poa,east"$/],
    notes: [IGNORED],
  },
  {
    what: 'the last line has no line end, and its quote is text',
    content: 'id\tname\n1\tAcer\n2\t"Rosa',
    rows: 2,
    notes: [/: line 3 has a quote/],
  },
  { what: 'quotes that each line closes', content: QUOTED.slice(0, QUOTED.indexOf('3')), rows: 2 },
  {
    what: 'a file with quoted fields and a quote that its line does not close is a question',
    content: QUOTED,
    rows: 2,
    faulty:
      /: line 4 has a quote .*, but line 2 has a field in quotes; use --quotes off if .*, or --quotes on /,
  },
  {
    what: 'the question has an answer',
    content: QUOTED,
    args: ['--quotes', 'on'],
    rows: 3,
    lineBreaks: [/line 4 \(row 3\): "name" is "Poa\\nannua"$/],
  },
  {
    what: 'rows of delimiters and blanks are skipped, also before the header',
    content: ',,\n \t\n"",,\nid,name,tag\n1,Acer,x\n,,\n , ,\u00a0\n\n"",,\nx,Rosa,\n',
    rows: 2,
    rejected: [/ line 10 \(row 2\): id "x" is not a number; /],
  },
  {
    what: 'ids are shown with their faults',
    content:
      'id,name\n0012,a\n 27 ,a\n+22,a\n"1,234",a\n1.000,a\n1 234,a\n-01,a\n1.5,a\n1e3,a\nA7,a\n,a\n' +
      '9223372036854775808,a\n-9223372036854775809,a\n1.0,a\n-9223372036854775808,a\n',
    rows: 15,
    rejected: [
      /: id "0012" has a leading zero; /,
      /: id " 27 " has a blank before or after it; /,
      /: id "\+22" has another sign than -; /,
      /: id "1,234" has a separator; /,
      /: id "1\.000" may have separators; /,
      /: id "1 234" has a separator; /,
      /: id "-01" has a leading zero; /,
      /: id "1\.5" has a fraction; /,
      /: id "1e3" has an exponent; /,
      /: id "A7" is not a number; /,
      /: id is required$/,
      /: id "9223372036854775808" is above 9223372036854775807, /,
      /: id "-9223372036854775809" is below -9223372036854775808, /,
    ],
  },
  {
    what: 'names of columns are compared after NFC',
    content: 'id,Localizac\u0327a\u0303o\n1,Acer\n',
    args: ['--columns', 'name=Localização'],
    rows: 1,
  },
  {
    what: 'line numbers count line breaks in quotes, CR, LF, CRLF and blank lines',
    content: '\r\n\nid,name\r1,"a\r\nb\rc\nd"\r\n\r\rx,e\n\nx,f',
    rows: 3,
    lineBreaks: [/ line 4 \(row 1\): /],
    rejected: [/ line 10 \(row 2\): /, / line 12 \(row 3\): /],
  },
  {
    what: 'elements of an array have line numbers',
    content: '\n[\r\n {"id":1,"name":"a"},\r\n\r\n {"id":2},\n {"id":3}]',
    rows: 3,
    rejected: [/ line 5 \(element 2\): name is required$/, / line 6 \(element 3\): /],
  },
  {
    what: 'a wrong encoding is a question, with the bytes and the text in likely encodings',
    content: latin1('id,name\n1,a\n2,B\xf8\xedza b\xeclokor\xe1\n'),
    rows: 0,
    faulty:
      / is not UTF-8: line 3 has the bytes F8 ED EC E1: .*"Bříza bělokorá" in WINDOWS-1250, .*\? .* --encoding /,
  },
  ...(
    [
      [
        'UTF-16 without a mark',
        Buffer.from('id,name\n1,a\n', 'utf16le'),
        /is UTF-16LE without a byte order mark; import it with --encoding UTF-16LE$/,
      ],
      ['UTF-32', latin1('\xff\xfe\0\0i\0\0\0d\0\0\0,\0\0\0'), /is UTF-32; convert it \(iconv -f UTF-32 /],
      ['UTF-32 without a mark', latin1('\0\0\0i\0\0\0d\0\0\0,'), /is UTF-32BE; /],
      [
        '.xls',
        latin1('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0\0\0'),
        /is an old Excel file \(\.xls\).*CSV UTF-8/,
      ],
      [
        '.xlsx',
        latin1('PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0\xdf\xc2\n'),
        /is a spreadsheet or ZIP file; save/,
      ],
      ['zstd', zstdCompressSync('id,name\n1,a\n'), /is compressed with zstd; decompress it/],
      ['bzip2', latin1('BZh91AY&SY\x1d\x8e'), /is compressed with bzip2; decompress it/],
      ['xz', latin1('\xfd7zXZ\0\0\x04\xe6\xd6'), /is compressed with xz; decompress it/],
      ['.xls in gzip', gzipSync(latin1('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0')), /is an old Excel file/],
    ] as const
  ).map(([what, content, faulty]): Case => ({ what, content, rows: 0, faulty })),
  {
    what: 'more than 64 MiB of empty lines, before and after the header',
    content: gzipSync(`${'\n'.repeat(68_000_000)}id,name\r\n1,a\r\n${'\r\n'.repeat(34_000_000)}x,b\r\n`),
    rows: 2,
    rejected: [/ line 102000003 \(row 2\): /],
  },
];

const folder = testFolder();
const commands = commandProcess(folder);

suite('a dry run', () => {
  for (const { what, content, args = [], rows, rejected = [], lineBreaks = [], faulty, notes = [] } of CASES)
    test(what, async () => {
      await writeFile(join(folder, 'plants'), content);
      // Standard input has no size.
      const isGzip = content[0] === 31;
      for (const file of isGzip ? ['plants'] : ['plants', '-']) {
        const { exitCode, stdout, stderr } = await commands.run({
          args: ['import', '--dry-run', ...args, file],
          ...(file === '-' && { stdin: content }),
        });
        const lines = stdout.trimEnd().split('\n');
        const [comparison, summary] = lines.splice(-2);
        assert.match(comparison!, /^not compared with a store: there is no plant store at .*--database$/);
        const expected = [
          ...rejected.map((pattern): [string, RegExp] => ['rejected row', pattern]),
          ...lineBreaks.map((pattern): [string, RegExp] => ['line break', pattern]),
          ...(faulty === undefined ? [] : [['faulty file', faulty] as [string, RegExp]]),
        ];
        for (const [kind, pattern] of expected) {
          const index = lines.findIndex(line => line.startsWith(`${kind}: `) && pattern.test(line));
          assert.ok(index >= 0, `${kind}, ${pattern}: ${stdout}`);
          lines.splice(index, 1);
        }
        assert.deepEqual(lines, []);
        assert.match(
          summary!,
          new RegExp(`^${rows} rows?, .*; not compared with a store; nothing was sent$`),
        );
        assert.equal(exitCode, rejected.length > 0 || faulty !== undefined ? 1 : 0);
        // A slow run shows its progress.
        const noted = stderr.split('\n').filter(line => line !== '' && !line.startsWith('reading: '));
        assert.equal(noted.length, notes.length, stderr);
        for (const [index, pattern] of notes.entries()) assert.match(noted[index]!, pattern);
      }
    });

  test('leaves no progress on a terminal', { skip: !HAS_TERMINAL }, async () => {
    const shown = await shownOnTerminal(
      fifo => ['import', '--dry-run', fifo],
      'id,name\n1,oak\n',
      /reading: /,
    );
    // What stays of each line after the last code that clears it.
    const lines = shown.split(/\r?\n/).map(line => line.split('\u001b[2K').at(-1)!);
    const [comparison, summary, ...others] = lines.filter(line => line !== '');
    assert.match(comparison!, /^not compared with a store: /);
    assert.match(summary!, /^1 row, 1 distinct id, .*; nothing was sent$/);
    assert.deepEqual(others, []);
  });
});

test('an import stores all rows of a file that never quotes, exactly, and reports a line break', async () => {
  await using service = await startTestService();
  const send = (content: string, ...args: string[]) =>
    commands.run({
      args: ['import', '--url', service.url, '--token', service.token, ...args, '-'],
      stdin: content,
    });
  const quoted = await send(UNQUOTED, '--quotes', 'on');
  assert.match(quoted.stdout, /^2 rows: 2 created/);
  assert.match(quoted.stderr, /\nstandard input line 2 \(row 1\) has a line break: "locality" is "north\\n2/);
  const all = await send(UNQUOTED.replace('\tRosa', '\t"Rosa'));
  assert.match(all.stdout, /^4 rows: 2 created, 2 unchanged, 0 replaced, 0 rejected/);
  const { stdout } = await commands.run({ args: ['export', '--database', service.database] });
  assert.equal(stdout, 'id,name,tag\n1,Acer,\n2,"""Rosa",\n3,Poa,\n4,Fagus,\n');
});
