import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { commandProcess } from '../../harness/command-lines.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';

/** A file as people have it, byte by byte, and what an import stores and says. */
interface Case {
  what: string;
  content: string | Uint8Array;
  args?: string[];
  /** Standard input instead of a file. */
  isStream?: true;
  /** The lines of an export without its header. */
  stored?: string[];
  /** The lines of the rejects file, with the header of CSV. */
  rejects?: (string | RegExp)[];
  /** The message that ends the import. */
  failure?: RegExp;
  note?: RegExp;
}

function bytes(...parts: (string | number[])[]): Buffer {
  return Buffer.concat(parts.map(part => Buffer.from(part as string)));
}

function latin1(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

/** A file on which an earlier version was wrong. Its README says what is right. */
function sharedCase(name: string): Buffer {
  return readFileSync(new URL(`../../../../shared/cases/${name}`, import.meta.url));
}

function utf16be(text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16();
}

const TITLES = 'Garden list;;\nof 2026, "east;;\n;;\nId;Name;Tag\n1;Acer;x\nx;Rosa;\n';
const HEADER = 'id,name,line,row,error,message';
const CAFE = 'the row is not UTF-8: it has the byte E9: "Café" in WINDOWS-1252 or WINDOWS-1250, ';
const FEATURES = [
  '{"type":"Feature","id":7,"geometry":{"type":"Point","coordinates":[1,2]},"properties":{"name":"Acer","tag":null}}',
  '{"type":"Feature","id":"8","geometry":null,"properties":{"id":9,"name":"Poa, {[\\"","tag":"x"}}',
  '{"type":"Feature","id":10,"properties":null}',
  '{"type":"Feature","id":"plots.1","properties":{"name":"Rosa","row":3}}',
];
/** GeoJSON as QGIS writes it. */
const GEOJSON = `{"type":"FeatureCollection","name":"plots","bbox":[1,2,3,4],"features":[${FEATURES}]}`;
const GEOJSON_STORED = ['7,Acer,', '9,"Poa, {[""",x'];
/** @param line on which the features begin */
function geoJsonRejects(line: number): (string | RegExp)[] {
  return [
    `{"id":10,"line":${line},"row":3,"error":40002,"message":"name is required"}`,
    new RegExp(
      String.raw`^\{"id":"plots\.1","name":"Rosa","line":${line},"row":4,"error":40002,"message":"id \\"plots\.1\\" is not a number; `,
    ),
  ];
}

const CASES: Case[] = [
  {
    what: 'a named encoding',
    content: latin1('id;name\n1;B\xf8\xedza b\xeclokor\xe1\n'),
    args: ['--encoding', 'Windows-1250'],
    stored: ['1,Bříza bělokorá,'],
  },
  {
    what: 'an encoding of several bytes, one of which is a backslash, and a quote beside it',
    content: latin1('id,name\n1,"\x95\x5c"\n'),
    args: ['--encoding', 'shift_jis'],
    stored: ['1,表,'],
  },
  {
    what: 'a file that is not in the named encoding',
    content: latin1('id,name\n1,a\n2,Caf\xe9,\n'),
    args: ['--encoding', 'shift_jis'],
    failure: / is not shift_jis: line 3 has bytes .* --encoding; nothing was sent$/,
  },
  {
    what: 'a file of UTF-8 with another named encoding, which would store CafÃ©',
    content: 'id,name\n1,Café\n',
    args: ['--encoding', 'windows-1252'],
    failure: / is valid UTF-8, .*; import it without --encoding, .*; nothing was sent$/,
  },
  {
    what: 'the Unicode text of Excel',
    content: Buffer.from('\ufeffid\tname\r\n1\tAcer × 😀\r\n', 'utf16le'),
    stored: ['1,Acer × 😀,'],
    note: / has the byte order mark of UTF-16LE, and is read so$/,
  },
  {
    what: 'a mark that names the other byte order',
    content: gzipSync(utf16be('\ufeff[{"id":1,"name":"é"}]')),
    args: ['--encoding', 'utf-16'],
    stored: ['1,é,'],
  },
  {
    what: 'a mark that contradicts the named encoding',
    content: bytes('\ufeffid,name\n1,é\n'),
    args: ['--encoding', 'windows-1252'],
    failure: / has the byte order mark of UTF-8, so it is not windows-1252; import it without --encoding; /,
  },
  {
    what: 'UTF-16 without a mark',
    content: utf16be('id,name\n1,é\n'),
    args: ['--encoding', 'utf-16be'],
    stored: ['1,é,'],
  },
  {
    what: 'one row of Latin-1 in a file of UTF-8, and a real U+FFFD',
    content: bytes('id,name\n1,Caf', [0xe9], '\n2,Café\n3,\ufffd\n'),
    stored: ['2,Café,', '3,\ufffd,'],
    rejects: [HEADER, new RegExp(`^1,Caf\ufffd,2,1,40002,"${CAFE.replaceAll('"', '""')}.*"$`)],
  },
  {
    what: 'one row of Latin-1 in JSON Lines of UTF-8',
    content: bytes('{"id":1,"name":"Café"}\n{"id":2,"name":"Caf', [0xe9], '"}\n'),
    stored: ['1,Café,'],
    rejects: [
      new RegExp(
        `^\\{"id":2,"name":"Caf\ufffd","line":2,"row":2,"error":40002,"message":"${CAFE.replaceAll('"', '\\\\"')}.*"\\}$`,
      ),
    ],
  },
  {
    what: 'an invalid byte and an unclosed quote in one row',
    content: bytes('id,name\n1,é\n2,"Caf', [0xe9], '\n3,a\n'),
    stored: ['1,é,'],
    rejects: [
      HEADER,
      '"2,""Caf\ufffd',
      /^3,a",,3,2,40002,"the row has a quote .* line 3, and takes 2 lines; .* UTF-8: /,
    ],
  },
  {
    what: 'a byte order mark, ASCII and one invalid byte',
    content: bytes('\ufeffid,name\n1,a\n2,', [0xe2, 0x82], '\n'),
    stored: ['1,a,'],
    rejects: [HEADER, /^2,\ufffd+,3,2,40002,"the row is not UTF-8: /],
  },
  {
    what: 'more lines with invalid bytes than with other valid characters',
    content: bytes('id,name\n1,é\n2,', [0xe9], '\n3,x', [0xe9], '\n'),
    failure: / is not UTF-8: line 3 has the byte E9: "é" in WINDOWS-1252 .*; nothing was sent$/,
  },
  {
    what: 'the same file, if a person says that it is UTF-8',
    content: bytes('id,name\n1,é\n2,', [0xe9], '\n3,x', [0xe9], '\n'),
    args: ['--encoding', 'UTF-8'],
    stored: ['1,é,'],
    rejects: [HEADER, /^2,\ufffd,3,2,/, /^3,x\ufffd,4,3,/],
  },
  {
    what: 'a stream in another encoding, whose first text beyond ASCII comes late',
    content: gzipSync(latin1(`id,name\n1,a\n${'\n'.repeat(200_000)}2,Caf\xe9\n`)),
    isStream: true,
    stored: ['1,a,'],
    failure: / is not UTF-8: line 200003 has the byte E9: .* rows before it, if any, were sent, /,
  },
  {
    what: 'title rows, which the message names',
    content: TITLES,
    failure: /the column id is missing; .*; line 4 names id and name and tag, so use --header-row 4 if /,
  },
  {
    what: 'title rows above the named header, and their quote',
    content: TITLES,
    args: ['--header-row', '4'],
    stored: ['1,Acer,x'],
    rejects: ['id,name,tag,line,row,error,message', /^x,Rosa,,6,2,40002,/],
  },
  {
    what: 'a header row after the end of the file',
    content: TITLES.replaceAll('\n', '\r\n'),
    args: ['--header-row', '8'],
    failure: / has fewer than 8 lines; .* --header-row; nothing was sent$/,
  },
  {
    what: 'GeoJSON in one line',
    content: GEOJSON,
    stored: GEOJSON_STORED,
    rejects: geoJsonRejects(1),
    note: / is GeoJSON: the properties of each feature are read; /,
  },
  {
    what: 'GeoJSON of many chunks, whose type comes last',
    content: `{"features":[\n${FEATURES},\n${`${FEATURES[0]},\n`.repeat(2000)}${FEATURES[1]}],\n"type":"FeatureCollection"}\n`,
    stored: GEOJSON_STORED,
    rejects: geoJsonRejects(2),
  },
  {
    what: 'an object with one list, and other members',
    content:
      '{\n "count": 2,\n "units": ["m"],\n "plants": [\n  {"id": 1,\n   "name": "a"},\n  {"id": 2}\n ],\n "next": {"list": [{}]}\n}\n',
    stored: ['1,a,'],
    rejects: ['{"id":2,"line":7,"row":2,"error":40002,"message":"name is required"}'],
    note: / is a JSON object: its list "plants" is read$/,
  },
  {
    what: 'an object with two lists',
    content: '{"plants":[{"id":1,"name":"a"}],\n"places":[{"id":2,"name":"b"}]}',
    failure: / is a JSON object with two lists, "plants" and "places"; .*; nothing was sent$/,
  },
  {
    what: 'an object without a list',
    content: '{"plants":{\n"1":"a"},"count":1}',
    failure:
      / is a JSON object without a list of objects; its members are "plants", "count"; .*GeoJSON; nothing /,
  },
  {
    what: 'an object that ends within its list',
    content: '{"plants":[\n{"id":1,"name":"a"},',
    failure: / ends before the end of the JSON array, at or after element 2; nothing was sent$/,
  },
  {
    what: 'JSON Lines whose plants have lists, and whose first line is incomplete',
    content:
      '{"name":"a","synonyms":[{"id":5,"name":"b"}],\n{"name":"a","synonyms":[{"id":5,"name":"b"}],"id":1}\n',
    stored: ['1,a,'],
    rejects: [/^\{"text":"\{\\"name\\".*,"line":1,"row":1,"error":40001,/],
  },
  {
    what: 'JSON Lines with one line, whose plant has a list',
    content: '{"id":1,"synonyms":[{"id":5,"name":"b"}]}',
    rejects: [
      '{"id":1,"synonyms":[{"id":5,"name":"b"}],"line":1,"row":1,"error":40002,"message":"name is required"}',
    ],
  },
  {
    what: 'a value that is no text',
    content: '[{"id":1.5,"name":["a"],"tag":0}]',
    rejects: [
      /"message":"id 1\.5 must be an integer .*; name \[\\"a\\"\] is not a text; .*; tag 0 is not a text; /,
    ],
  },
  {
    what: 'a quote that is never closed, after a field with line breaks',
    content: 'id,name,tag\n1,a,\n2,"b\nb","c\n3,d,\n4,e,',
    stored: ['1,a,'],
    rejects: [
      'id,name,tag,line,row,error,message',
      ...['"2,""b', 'b"",""c', '3,d,'],
      '4,e,",,,3,2,40002,"the row has a quote that is never closed: it begins in line 4, and takes 3 lines; write id, name and tag into their own columns"',
    ],
  },
  {
    what: 'a quote that another row closes',
    content: 'id,name\n1,"a\n2,b\n3,"c"\n4,d\n',
    stored: ['4,d,'],
    rejects: [
      HEADER,
      '"1,""a',
      '2,b',
      /^3,""c""",,2,1,40002,"the row has a misplaced quote in 3 lines from line 2 on, /,
    ],
  },
];

const SHARED: Case[] = [
  {
    what: 'case 01: quotes are text in a file of tabs',
    content: sharedCase('01-tab-separated-without-quoting.tsv'),
    stored: ['1,Acer,', '2,Rosa,', '3,Poa,', '4,Fagus,'],
    note: /: line 2 has a quote that its line does not close, so quotes are text in this file; /,
  },
  {
    what: 'case 03: rows without text are skipped',
    content: sharedCase('03-blank-rows.csv'),
    stored: ['1,Acer,x'],
  },
  {
    what: 'case 04: the encoding is a question',
    content: sharedCase('04-windows-1250.csv'),
    failure:
      /: line 2 has the bytes F8 .*"Bøíza bìlokorá" in WINDOWS-1252, "Bříza bělokorá" in WINDOWS-1250, .*\? /,
  },
  {
    what: 'case 04: the question has an answer',
    content: sharedCase('04-windows-1250.csv'),
    args: ['--encoding', 'windows-1250'],
    stored: ['1,Bříza bělokorá,'],
  },
  {
    what: 'case 06: ids are shown with their faults',
    content: sharedCase('06-ids-in-range.csv'),
    rejects: [
      HEADER,
      /^0012,zeros,2,1,40002,"id ""0012"" has a leading zero; /,
      /^20 ,blank,3,2,40002,"id ""20 "" has a blank /,
      /^\+22,plus,4,3,40002,"id ""\+22"" has another sign than -; /,
      /^"1,016",thousands,5,4,40002,"id ""1,016"" has a separator; /,
    ],
  },
  {
    what: 'case 07: names of columns are compared after NFC',
    content: sharedCase('07-header-nfd.csv'),
    args: ['--columns', 'name=Localização'],
    stored: ['1,Acer,'],
  },
];

const commands = commandProcess();

function importInto({ url, token, folder }: RunningService, args: string[], stdin: string | Uint8Array = '') {
  return commands.run({ args: ['import', '--url', url, '--token', token, ...args], cwd: folder, stdin });
}

async function rejectsIn({ folder }: RunningService): Promise<{ name: string; text: string } | undefined> {
  const name = (await readdir(folder))
    .filter(each => each.includes('.rejects'))
    .sort()
    .at(-1);
  return name === undefined ? undefined : { name, text: await readFile(join(folder, name), 'utf8') };
}

suite('files as people have them', { concurrency: 4 }, () => {
  for (const { what, content, args = [], isStream, stored = [], rejects = [], failure, note } of [
    ...CASES,
    ...SHARED,
  ])
    test(what, async () => {
      await using service = await startTestService();
      await writeFile(join(service.folder, 'list'), content);
      const { stdout, stderr, exitCode } = await importInto(
        service,
        [...args, isStream ? '-' : 'list'],
        isStream === undefined ? '' : content,
      );
      const lines = stderr.trimEnd().split('\n');
      if (failure !== undefined) assert.match(lines.at(-1)!, failure);
      if (note !== undefined) assert.match(lines.join('\n'), new RegExp(note, 'm'));
      assert.equal(exitCode, failure === undefined && rejects.length === 0 ? 0 : 1, stdout + stderr);
      const { stdout: exported } = await commands.run({ args: ['export', '--database', service.database] });
      assert.deepEqual(exported.trimEnd().split('\n').slice(1), stored);
      const written = await rejectsIn(service);
      const rejectedLines = written?.text.trimEnd().split('\n') ?? [];
      assert.equal(rejectedLines.length, rejects.length, written?.text ?? 'no row is rejected');
      for (const [index, expected] of rejects.entries()) {
        if (typeof expected === 'string') assert.equal(rejectedLines[index], expected);
        else assert.match(rejectedLines[index]!, expected);
      }
      if (written === undefined) return;
      // A rejects file can be imported, and its rows stay rejected until they are corrected.
      const again = await importInto(service, [written.name]);
      assert.match(again.stdout, /rows?: 0 created, 0 unchanged, 0 revised, [1-9][0-9]* rejected /);
      const reasons = (text: string): string =>
        text.replace(/[0-9]+(?=,(?:[0-9]+,)?4000[0-9],)|"(?:line|row)":[0-9]+/g, 'N');
      assert.equal(reasons((await rejectsIn(service))!.text), reasons(written.text));
    });
});
