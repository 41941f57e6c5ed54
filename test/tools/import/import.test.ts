import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { commandProcess } from '../../harness/command-lines.ts';
import { assertFailed, type Finished } from '../../harness/program.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { HAS_TERMINAL, shownOnTerminal } from '../../harness/terminal.ts';
import { testFolder } from '../../harness/test-folder.ts';

const commands = commandProcess();

/** Runs `import` in the folder of the service, with its address and token. */
function importInto(
  { url, token, folder }: RunningService,
  args: string[],
  stdin: string | Uint8Array = '',
): Promise<Finished> {
  return commands.run({ args: ['import', '--url', url, '--token', token, ...args], cwd: folder, stdin });
}

async function write({ folder }: RunningService, files: Record<string, string | Uint8Array>): Promise<void> {
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
}

function read({ folder }: RunningService, name: string): Promise<string> {
  return readFile(join(folder, name), 'utf8');
}

async function exported(service: RunningService): Promise<string> {
  return (await commands.run({ args: ['export', '--database', service.database] })).stdout;
}

const STORED =
  'id,name,tag\n-9223372036854775808,"a ""b"", c",\n1,"  two  lines\nhere ",""\n9007199254740993,é,x\n';
const CSV =
  '\ufeffid,tag,name\n9007199254740993,x,é\n1,"","  two  lines\nhere "\n-9223372036854775808,,"a ""b"", c"\n';
const JSON_VALUES = [
  '{"id":9007199254740993,"name":"\\u00e9","tag":"x"}',
  '{"id":1.0,"name":"  two  lines\\nhere ","tag":""}',
  '{"name":"a \\"b\\", c","id":-9223372036854775808}',
];

/** One bit of the first id is flipped, which only the checksum shows. */
const DAMAGED = gzipSync(`id,name\n${Array.from({ length: 8000 }, (_, id) => `1${id},name\n`).join('')}`, {
  level: 0,
});
DAMAGED[10 + 5 + 'id,name\n'.length]! ^= 2;

suite('import', { concurrency: 4 }, () => {
  test('a terminal shows no bar if the size of the input is unknown', { skip: !HAS_TERMINAL }, async () => {
    await using service = await startTestService();
    const shown = await shownOnTerminal(
      fifo => ['import', fifo, '--url', service.url, '--token', service.token],
      'id,name\n1,oak\n',
      /[01] created, 0 unchanged, 0 replaced, 0 rejected/,
    );
    assert.match(shown, /1 row: 1 created/);
    assert.doesNotMatch(shown, /\[[#.]+\]/);
  });

  const FILES: [name: string, content: string | Uint8Array, fromStandardInput: boolean][] = [
    ['plants.csv', CSV, false],
    ['plants.txt.gz', gzipSync(CSV.replaceAll('\n', '\r\n').replace('lines\r\n', 'lines\n')), false],
    ['plants.jsonl', `\ufeff${JSON_VALUES.join('\n\n')}`, true],
    ['plants.json.gz', gzipSync(` [${JSON_VALUES.join(' ,\n')} ]\n`), true],
  ];
  test('every form of file arrives exactly, also from standard input, and running it again changes nothing', async () => {
    await using service = await startTestService();
    for (const [name, content, fromStandardInput] of FILES) {
      await write(service, { [name]: content });
      const { exitCode, stdout, stderr } = await importInto(
        service,
        [fromStandardInput ? '-' : name],
        content,
      );
      const isGzipStream = fromStandardInput && name.endsWith('.gz');
      const [note, ...notes] = stderr.split('\n').toReversed().slice(1);
      assert.match(note!, / has a line break: "name" is " {2}two {2}lines\\nhere "; .*--dry-run /);
      assert.equal(notes.length, isGzipStream ? 1 : 0);
      if (isGzipStream) assert.match(notes[0]!, /^standard input is a gzip stream: its checksum can /);
      // Any difference from the first file would be a revision.
      const counts = name === 'plants.csv' ? '3 created, 0 unchanged' : '0 created, 3 unchanged';
      const summary = `^3 rows: ${counts}, 0 replaced, 0 rejected in [0-9.]+ s \\([0-9,]+/s\\)\n$`;
      assert.match(stdout, new RegExp(summary), name);
      assert.equal(exitCode, 0);
    }
    await write(service, { 'none.json': '[]', 'none.csv': 'id,name\n' });
    const again = await importInto(service, ['plants.csv', 'plants.jsonl', 'none.json', 'none.csv']);
    assert.match(again.stdout, /^6 rows: 0 created, 6 unchanged, 0 replaced, 0 rejected/);
    assert.equal(await exported(service), STORED);
  });

  test('rejected rows of a CSV file can be corrected and imported again', async () => {
    await using service = await startTestService();
    const long = 'x'.repeat(1024 * 1024);
    const rows = `"a,b",1,,t\n,2,good,\n,3,${long},""\n,4,short\n,5,"b" c,\n`;
    await write(service, { 'trees.csv': `note,id,name,tag\n${rows}` });
    const first = await importInto(service, ['trees.csv']);
    assert.match(first.stdout, /^5 rows: 1 created, 0 unchanged, 0 replaced, 4 rejected/);
    assert.match(
      first.stdout,
      /\n4 rejected rows are in trees\.rejects\.csv, with the reasons; correct and import again:/,
    );
    assert.match(first.stderr, /^trees\.csv: only id, name and tag are read; ignored: "note"\n$/);
    assert.equal(first.exitCode, 1);
    const rejects = (await read(service, 'trees.rejects.csv')).split('\n');
    assert.deepEqual(
      rejects.map(line => line.replace(long, 'LONG')).sort(),
      [
        '',
        '"a,b",1,,t,2,1,40002,name is required',
        ',4,short,,5,4,fields 3,"the row has 3 fields, but the first row names 4 columns"',
        '",5,""b"" c,",,,,6,5,quotes,"the row has a misplaced quote; write each value into its own column; in a text editor, enclose a value that has quotes, and double these"',
        ',3,LONG,"",4,3,41301,the body exceeds the size limit of this service; shorten name or tag',
        'note,id,name,tag,line,row,error,message',
      ].sort(),
    );

    await write(service, {
      'trees.rejects.csv': rejects.join('\n').replace('"a,b",1,,t', '"a,b",1,fixed,t').replace(long, 'short'),
    });
    const second = await importInto(service, ['trees.rejects.csv']);
    assert.match(second.stdout, /^4 rows: 2 created, 0 unchanged, 0 replaced, 2 rejected/);
    assert.match(second.stdout, /\n2 rejected rows are in trees\.rejects-2\.csv,/);
    assert.match(await read(service, 'trees.rejects.csv'), /fixed/);
    // The unchanged rows keep their reasons. Their tag stays absent if their message is deleted.
    const unchanged = await read(service, 'trees.rejects-2.csv');
    for (const part of rejects
      .filter(line => /^",5|^,4/.test(line))
      .flatMap(line => line.split(/[0-9],[0-9],(?:quotes|fields)/)))
      assert.ok(unchanged.includes(part), part);
    const corrected = unchanged
      .replace(/"the row has [0-9][^"]+"/, '')
      .replace('",5,""b"" c,",,,', ',5,"b c",');
    await write(service, { 'trees.rejects-2.csv': corrected });
    assert.match((await importInto(service, ['trees.rejects-2.csv'])).stdout, /^2 rows: 2 created/);
    assert.equal(await exported(service), 'id,name,tag\n1,fixed,t\n2,good,\n3,short,""\n4,short,\n5,b c,\n');
  });

  test('--quotes off is advised for the original, and is a usage error for a rejects file', async () => {
    await using service = await startTestService();
    await write(service, { 'herbs.tsv': 'id\tname\n1\t12" pot\n2\ta\n' });
    const { stdout, stderr } = await importInto(service, ['herbs.tsv', '--rejects', 'r.csv']);
    assert.match(stdout, /^2 rows: 1 created, 0 unchanged, 0 replaced, 1 rejected/);
    assert.equal(
      stderr,
      'herbs.tsv: line 2 has a misplaced quote; if quotes are text in this file, use --quotes off\n',
    );
    const rejects = await read(service, 'r.csv');
    assert.equal(
      rejects,
      'id,name,line,row,error,message\n"1\t12"" pot",,2,1,quotes,"the row has a misplaced quote; write each value into its own column; in a text editor, enclose a value that has quotes, and double these"\n',
    );
    const says =
      /^plant-store: .* is a rejects file, in which quotes always enclose fields; import it without --/;
    for (const file of ['r.csv', '-'])
      assertFailed(await importInto(service, ['--quotes', 'off', file], rejects), says, 2);
    const original = await importInto(service, ['--quotes', 'off', 'herbs.tsv']);
    assert.match(original.stdout, /^2 rows: 1 created, 1 unchanged/);
  });

  test('each input has its own rejects file, and no file is overwritten', async () => {
    await using service = await startTestService();
    await mkdir(join(service.folder, 'sub'));
    await write(service, {
      'a.csv': 'id,name\nx,a\n',
      'sub/a.csv.gz': gzipSync('id,name\ny,b\n'),
      "it's b.jsonl": '{"id":1}\n',
    });
    const files = ['a.csv', 'sub/a.csv.gz', "it's b.jsonl", '-'];
    const { stdout } = await importInto(service, files, 'id,name\nz,c\n');
    // As a shell reads them.
    const names = String.raw`a.rejects.csv a.rejects-2.csv 'it'\''s b.rejects.jsonl' plants.rejects.csv`;
    assert.ok(
      stdout.includes(`in ${names}, with`) && stdout.endsWith(`import --url ${service.url} ${names}\n`),
      stdout,
    );
    assert.match(await read(service, 'a.rejects.csv'), /\nx,a,2,1,/);
    assert.match(await read(service, 'a.rejects-2.csv'), /\ny,b,2,1,/);
    assert.match(await read(service, 'plants.rejects.csv'), /\nz,c,2,1,/);
  });

  const UNUSABLE = {
    'good.csv': CSV,
    'empty.csv': ' \n',
    'delimiters.csv': ',,,\n,,\n',
    'separator.csv': 'sep=;\n',
    'damaged.csv.gz': DAMAGED,
    'spread.json': '{\n "id": 1,\n "name": "a"\n}\n',
    'latin1.csv': Buffer.from('id,name\n1,a\n2,Caf\u00e9\n3,c\n', 'latin1'),
    'mixed.csv': Buffer.concat([
      Buffer.from('\ufeffid,name\n6,a\n'),
      Buffer.from('2,long \u00e9\n3,c\n4,\u00e9', 'latin1'),
    ]),
  };
  const REJECTED: [args: string[], RegExp][] = [
    [['good.csv', 'none\u001b[2J.csv'], /none\\u001b\[2J\.csv does not exist; nothing was sent\n$/],
    [['--columns', 'id=\u001b[2J', 'good.csv'], /must name the columns \\u001b\[2J, name/],
    [
      ['--columns', 'tag=Family', 'good.csv'],
      /the column Family is missing; .* must name the columns id, name and Family; it is/,
    ],
    [['good.csv', 'folder'], /folder is a folder; name the files in it; nothing was sent\n$/],
    [['good.csv', 'empty.csv'], /empty\.csv is empty: it contains no plant; nothing was sent\n$/],
    [['good.csv', 'delimiters.csv'], /delimiters\.csv is empty: it contains no plant; nothing was sent\n$/],
    [['good.csv', 'separator.csv'], /separator\.csv is empty: it contains no plant; nothing was sent\n$/],
    [['--rejects', 'empty.csv', 'good.csv'], /empty\.csv already exists/],
    [
      ['--rejects', 'link', 'good.csv'],
      /link already exists and was not changed; name another file with --rejects/,
    ],
    [['--rejects', 'no/r.csv', 'good.csv'], /no\/r\.csv \(ENOENT\)/],
    [
      ['good.csv', 'damaged.csv.gz'],
      /\.gz is damaged .*\(Z_DATA_ERROR\); get a new copy; nothing was sent\n$/,
    ],
    [['spread.json'], /is neither JSON Lines nor a JSON array: a plant spans several lines/],
    [
      ['latin1.csv'],
      /is not UTF-8: line 3 has the byte E9: "Café" in WINDOWS-1252 or .*; nothing was sent\n$/,
    ],
    [
      ['mixed.csv'],
      /is not UTF-8: line 3 .*; with --encoding UTF-8, only the rows that are not .*; nothing was sent\n$/,
    ],
  ];
  test('what cannot be imported is rejected before the first plant is sent', async () => {
    await using service = await startTestService();
    await mkdir(join(service.folder, 'folder'));
    await write(service, UNUSABLE);
    symlinkSync('nowhere', join(service.folder, 'link'));
    for (const [args, expected] of REJECTED) {
      const { exitCode, stderr } = await importInto(service, args);
      assert.match(stderr, expected);
      assert.match(stderr, /^plant-store: .*\n$/);
      assert.equal(exitCode, 1);
    }
    assert.equal(await exported(service), 'id,name,tag\n');
    const files = await readdir(service.folder);
    const written = files.filter(name => !name.startsWith('plants.db') && !['folder', 'link'].includes(name));
    assert.deepEqual(written.sort(), Object.keys(UNUSABLE).sort());
  });

  test('a damaged gzip stream is announced, and the message does not call a repetition safe', async () => {
    await using service = await startTestService();
    const { exitCode, stdout, stderr } = await importInto(service, ['-'], DAMAGED);
    assert.match(
      stderr,
      /^standard input is a gzip stream: its checksum can be verified only after its .*\n/,
    );
    assert.match(
      stderr,
      /\nplant-store: .*\(Z_DATA_ERROR\); get a new copy; rows that were sent can be wrong/,
    );
    assert.doesNotMatch(stderr, /safe/);
    assert.equal(exitCode, 1);
    assert.match(stdout, /^[0-9,]+ rows: [1-9]/);
  });

  test('files that follow a fault are named, without control characters', async () => {
    await using service = await startTestService();
    const texts = ['id,name,x\n1,a,\ny,b,\n', '[{"id":1,"name":"a"},', 'id,name\n3,c\n', '[]'];
    const files = ['a\u009b.csv', '\u001bb.json', 'c\u009b.csv', 'd.json'];
    await write(service, Object.fromEntries(files.map((file, index) => [file, texts[index]!])));
    const { exitCode, stdout, stderr } = await importInto(service, files);
    assert.match(
      stdout,
      /^3 rows.*\n1 rejected row is in 'a\\u009b\.rejects\.csv', .*not all rows were sent/,
    );
    const [note, ...lines] = stderr.split('\n');
    assert.match(note!, /^a\\u009b\.csv: .* ignored: "x"$/);
    assert.match(
      lines.join(),
      /^not sent: c\\u009b\.csv d\.json,plant-store: \\u001bb\.json ends before .* safely run /,
    );
    assert.equal(exitCode, 1);
    assert.equal(await exported(service), 'id,name,tag\n1,a,\n');
  });

  test('columns and delimiter can be named, and the rejects file needs neither', async () => {
    await using service = await startTestService();
    await write(service, {
      'list.csv': 'Family|ACCESSION|Name, full|tag|Tags\nPinaceae|1|"a|b"|t|\n|x|c||\n',
    });
    const options = ['--columns', 'id=accession,name=Name, full,tag=Family', '--delimiter', '|'];
    const first = await importInto(service, [...options, 'list.csv']);
    assert.match(
      first.stdout,
      /^2 rows: 1 created.*\n.* again: npx plant-store import --url \S+ list\.rejects\.csv\n$/,
    );
    const rejects = await read(service, 'list.rejects.csv');
    assert.match(
      rejects,
      /^tag,id,name,ignored tag,ignored Tags,line,row,error,message\n,x,c,,,3,2,40002,"id ""x"" is not a number; /,
    );
    await write(service, { 'list.rejects.csv': rejects.replace(',x,c', ',2,c') });
    assert.match((await importInto(service, ['list.rejects.csv'])).stdout, /^1 row: 1 created/);
    assert.equal(await exported(service), 'id,name,tag\n1,a|b,Pinaceae\n2,c,\n');
  });

  test('a dry run sends nothing and says what an import would reject and what may be wrong', async () => {
    const folder = testFolder();
    const rows = Array.from({ length: 10 }, (_, index) => `${index},Quercus robur\n`).join('');
    const files = {
      'good.csv': `id,name\n${rows}10,Quercus robor\n11,Quercus alba\n`,
      'bad.csv': `id,name\n1," "\n1.23457E+15,b\n1234567890123450000,c\n${'x,\n'.repeat(3)}99,${'\u00e9'.repeat(600_000)}\n`,
      'broken.csv': 'id,name\n20,"a\n21,b"\n22,"c\n',
      'damaged.csv.gz': DAMAGED,
    };
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
    const run = (...names: string[]) =>
      commands.run({ args: ['import', '--dry-run', ...names], cwd: folder });
    const good = await run('good.csv');
    assert.deepEqual([good.exitCode, good.stderr], [0, '']);
    const notCompared =
      'not compared with a store: there is no plant store at ./data/plant-store.db; to compare, name the store of the service, if this machine can read it, with --database';
    assert.equal(
      good.stdout,
      `${notCompared}\n` +
        '12 rows, 12 distinct ids, 0 repeated ids, 0 rounded ids, 0 blank names, 0 line breaks, 0 rejected rows, 0 faulty files; not compared with a store; nothing was sent\n',
    );
    const all = await run(...Object.keys(files));
    assert.equal(all.exitCode, 1);
    assert.deepEqual(all.stdout.split('\n'), [
      'blank name: bad.csv line 2 (row 1): " "',
      'repeated id: bad.csv line 2 (row 1): 1',
      'rejected row: bad.csv line 3 (row 2): id "1.23457E+15" has an exponent; a spreadsheet may have rounded it; write all digits',
      'rounded id: bad.csv line 4 (row 3): a spreadsheet may have changed digits of 1234567890123450000',
      ...[4, 5, 6].map(
        row =>
          `rejected row: bad.csv line ${row + 1} (row ${row}): id "x" is not a number; write an integer in digits; name is required`,
      ),
      'rejected row: bad.csv line 8 (row 7): the body exceeds the size limit of this service; shorten name or tag',
      String.raw`line break: broken.csv line 2 (row 1): "name" is "a\n21,b"`,
      'rejected row: broken.csv line 4 (row 2): the row has a quote that is never closed: it begins in line 4, and takes 1 line; write each value into its own column; in a text editor, enclose a value that has quotes, and double these',
      'faulty file: damaged.csv.gz is damaged or incomplete: gzip data cannot be decompressed (Z_DATA_ERROR); get a new copy',
      notCompared,
      '21 rows, 15 distinct ids, 1 repeated id, 1 rounded id, 1 blank name, 1 line break, 6 rejected rows, 1 faulty file; not compared with a store; nothing was sent',
      '',
    ]);
    await writeFile(join(folder, 'many.csv'), `id,name\n${'1,a\n'.repeat(1000)}`);
    const many = await run('many.csv');
    assert.deepEqual([many.exitCode, many.stdout.split('\n').length], [0, 5 + 1 + 1 + 1]);
    assert.match(many.stdout, / 999 repeated ids, /);
  });

  test('a rejected token is named by its source', async () => {
    await using service = await startTestService();
    await write(service, { 'a.csv': 'id,name\n1,a\n', wrong: 'wrong\n' });
    const cases: [args: string[], env: Record<string, string>, source: string][] = [
      [['--token', 'wrong'], {}, '--token'],
      [['--token-file', 'wrong'], { PLANT_STORE_TOKEN: 'plant_TOKEN' }, 'the file wrong'],
      [[], { PLANT_STORE_TOKEN: 'plant_TOKEN' }, 'PLANT_STORE_TOKEN'],
      [[], { PLANT_STORE_TOKEN_FILE: 'wrong' }, 'the file wrong'],
    ];
    for (const [args, env, source] of cases) {
      const command = ['import', '--url', service.url, ...args, 'a.csv'];
      const { exitCode, stderr } = await commands.run({ args: command, cwd: service.folder, env });
      const says = `^plant-store: the service rejects the token of ${source}: the token is unknown, mistyped, .*; copy it again `;
      assert.match(stderr, new RegExp(says));
      assert.equal(exitCode, 1);
    }
  });

  test('the token comes from a flag, a file or the environment, flags first', async () => {
    await using service = await startTestService();
    await write(service, { 'a.csv': CSV, token: `${service.token}\n`, wrong: 'wrong\n' });
    for (const [args, env] of [
      [['--token', service.token], { PLANT_STORE_TOKEN: 'wrong' }],
      [['--token-file', 'token'], { PLANT_STORE_TOKEN: 'wrong' }],
      [['--token', service.token], { PLANT_STORE_TOKEN_FILE: 'wrong' }],
      [[], { PLANT_STORE_TOKEN: service.token }],
      [[], { PLANT_STORE_TOKEN_FILE: 'token' }],
    ] as const) {
      const { exitCode } = await commands.run({
        args: ['import', ...args, 'a.csv'],
        cwd: service.folder,
        env: { PLANT_STORE_URL: service.url, ...env },
      });
      assert.equal(exitCode, 0);
    }
  });
});
