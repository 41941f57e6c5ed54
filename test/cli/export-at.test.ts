import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { commandProcess } from '../harness/command-lines.ts';
import type { Finished } from '../harness/program.ts';
import { addToken, startTestService } from '../harness/running-service.ts';
import { type EngineUnderTest, enginesUnderTest, openNewStore } from '../harness/store-under-test.ts';
import { insertSql, type Row } from '../harness/stored-revisions.ts';
import { testFolder } from '../harness/test-folder.ts';

const folder = testFolder();
const engines = await enginesUnderTest();
const commands = commandProcess(folder);

async function storeWith(under: EngineUnderTest, rows: Row[]): Promise<string> {
  await using store = await openNewStore(under);
  await under.sql(store.database, insertSql(...rows));
  return store.database;
}

function exportOf(database: string, ...args: string[]): Promise<Finished> {
  return commands.run({ args: ['export', ...args, '--database', database] });
}

const time = (ms: number): string => new Date(ms).toISOString();

const ROWS: Row[] = [
  [-5, 1, 'five', null, 1_000, 1],
  [-5, 2, 'five', '', 5_000, 1],
  [6, 1, 'six', 'a', 1_000, 1],
  [6, 2, 'wrong', 'a', 3_001, 1],
  [6, 3, 'six', 'a', 3_002, 1],
  [9_007_199_254_740_992n, 1, 'new', null, 3_001, 1],
  [9_007_199_254_740_993n, 1, 'one', null, 2_000, 1],
  [9_007_199_254_740_993n, 2, 'two', null, 3_000, 1],
  [9_007_199_254_740_993n, 3, 'three', null, 4_000, 1],
];

/** The arguments, the expected lines after the header, and the message. */
const EXPORTS: [args: string[], lines: string[], says: RegExp][] = [
  [['--at', time(999)], [], /^0 plants printed; 4 newer plants not printed\n$/],
  [['--at', time(1_000)], ['-5,five,', '6,six,a'], /^2 plants printed; 2 newer plants /],
  [
    ['--at', '1970-01-01T02:00:03+02:00'],
    ['-5,five,', '6,six,a', '9007199254740993,two,'],
    /^3 plants printed; 1 newer plant not printed\n$/,
  ],
  [['--at', '1970-01-01T00:00:02.999Z'], ['-5,five,', '6,six,a', '9007199254740993,one,'], /^3 plants /],
  [
    ['--at', time(3_001)],
    ['-5,five,', '6,wrong,a', '9007199254740992,new,', '9007199254740993,two,'],
    /^4 plants printed; 0 newer plants /,
  ],
  // The content of plant 6 was set back.
  [
    ['--changed', '--at', time(3_000)],
    ['-5,five,', '9007199254740993,two,'],
    /^2 changed plants printed from the store (?:sqlite|postgres):\S+; 1 newer plant not printed\n$/,
  ],
  [['--changed', '--at', time(3_001)], ['-5,five,', '6,wrong,a', '9007199254740993,two,'], /^3 changed /],
  [['--changed', '--at', time(5_000)], [], /^0 changed plants printed from .*; 0 newer /],
  [
    ['--revisions', '--at', time(2_999)],
    [`-5,1,five,,${time(1_000)},1`, `6,1,six,a,${time(1_000)},1`, `9007199254740993,1,one,,${time(2_000)},1`],
    /^3 revisions printed\n$/,
  ],
];

for (const under of engines) {
  test(`export --at prints the store on ${under.name} as it was, and --changed what has changed since`, async () => {
    const database = await storeWith(under, ROWS);
    for (const [args, lines, says] of EXPORTS) {
      const { exitCode, stdout, stderr } = await exportOf(database, ...args);
      assert.deepEqual([exitCode, stdout.split('\n').slice(1, -1)], [0, lines], args.join(' '));
      assert.match(stderr, says, args.join(' '));
    }
    const jsonl = await exportOf(database, '--format', 'jsonl', '--changed', '--at', time(3_000));
    assert.equal(jsonl.stdout, '{"id":-5,"name":"five"}\n{"id":9007199254740993,"name":"two"}\n');
  });

  test(`export --at on ${under.name} prints no revision that damage may have replaced`, async () => {
    const wrong = (...row: Row): string => insertSql(row).replace("'right'", "'wrong'");
    const database = await storeWith(under, [
      [1, 1, 'intact', null, 1_000, 1],
      [2, 1, 'before', null, 1_000, 1],
      [2, 3, 'later', null, 3_000, 1],
      [3, 1, 'before', null, 1_000, 1],
      [3, 3, 'known again', null, 2_000, 1],
      [4, 1, 'newer', null, 3_000, 1],
    ]);
    for (const id of [2, 3]) await under.sql(database, wrong(id, 2, 'right', null, 3_000, 1));
    const { exitCode, stdout, stderr } = await exportOf(database, '--at', time(2_000));
    assert.deepEqual([exitCode, stdout], [1, 'id,name,tag\n1,intact,\n3,known again,\n']);
    assert.match(stderr, /revision 2 of plant 2 is damaged.*\n.*revision 2 of plant 3 is damaged/);
    assert.match(stderr, /\n2 plants printed; 1 newer plant not printed\n$/);
  });

  test(`export --at on ${under.name} says which plants a clock that was set back makes doubtful`, async () => {
    const database = await storeWith(under, [
      [7, 1, 'one', null, 3_000, 1],
      [7, 2, 'two', null, 2_000, 1],
      [7, 3, 'three', null, 2_500, 1],
      [8, 1, 'eight', null, 2_001, 1],
    ]);
    for (const [ms, lines, doubtful] of [
      [1_999, '', false],
      [2_000, '7,two,\n', true],
      [2_500, '7,three,\n8,eight,\n', true],
      [3_000, '7,three,\n8,eight,\n', false],
    ] as const) {
      const { exitCode, stdout, stderr } = await exportOf(database, '--at', time(ms));
      assert.deepEqual([exitCode, stdout], [0, `id,name,tag\n${lines}`]);
      const warning =
        /^WARNING: a clock was set back, so the times of plant 7 are .*; compare npx plant-store show 7\n/;
      assert.equal(warning.test(stderr), doubtful, `${ms}: ${stderr}`);
    }
  });
}

/** The SQL of the page for operators, by engine: ids of plants that are new since a time. */
function newIdsAsText(under: EngineUnderTest, since: string): string {
  const page = readFileSync(new URL('../../docs/operate/corrections.md', import.meta.url), 'utf8');
  const program = under.name === 'SQLite' ? 'sqlite3' : 'psql';
  const [, sql] = new RegExp(`^${program} [^"]*"(SELECT [^"]+)"`, 'm').exec(page)!;
  const parts = sql!.split('2026-05-01T14:30+02:00');
  assert.equal(parts.length, 2);
  return `SELECT CAST(id AS text) AS id FROM (${parts.join(since)}) AS new`;
}

/** The same time in several spellings, and one without seconds. */
const SPELLINGS = [
  ...['1970-01-01T00:00:03Z', '1970-01-01T00:00:03.000Z', '1970-01-01T02:00:03+02:00'],
  ...['1970-01-01T14:59:03.0+14:59', '1969-12-31T10:00:03-14:00', '1970-01-01T00:00:03-00:00'],
  ...['1970-01-01T00:00:02.999Z', '1970-01-01T05:30+05:30'],
];

for (const under of engines)
  test(`the SQL of the page on ${under.name} lists the plants that --at leaves out, however the time is written`, async () => {
    const database = await storeWith(under, ROWS);
    const ids = new Set(ROWS.map(([id]) => String(id)));
    for (const text of SPELLINGS) {
      const { exitCode, stdout } = await exportOf(database, '--at', text);
      assert.equal(exitCode, 0, text);
      const printed = new Set(Array.from(stdout.matchAll(/^(-?\d+),/gm), ([, id]) => id!));
      const listed = await under.sql(database, newIdsAsText(under, text));
      assert.deepEqual(new Set(listed.map(({ id }) => id)), ids.difference(printed), text);
    }
  });

for (const under of engines)
  test(`a wrong import on ${under.name} is undone by an import of what --changed prints`, async () => {
    const database = await under.newDatabase();
    const token = await addToken(database, 'east');
    await using service = await startTestService({ database });
    const importFile = async (name: string, text: string): Promise<Finished> => {
      writeFileSync(join(folder, name), text);
      const args = ['import', '--replace', name, '--url', service.url];
      return await commands.run({ args, env: { PLANT_STORE_TOKEN: token } });
    };
    const right = 'id,name,tag\n-9223372036854775808,"a ""b"", c",""\n1,"two\nlines",\n2,unchanged,x\n';
    assert.equal((await importFile('right.csv', right)).exitCode, 0);
    const since = new Date().toISOString();
    // The next revision must have a later time.
    while (new Date().toISOString() === since) await wait(1);
    const wrong =
      'id,name,tag\n-9223372036854775808,"",\n1,wrong,y\n2,unchanged,x\n3,new,\n9223372036854775807,new,\n';
    assert.equal((await importFile('wrong.csv', wrong)).exitCode, 0);

    const changed = await exportOf(database, '--at', since, '--changed');
    assert.match(changed.stderr, /^2 changed plants printed from .*; 2 newer plants not printed\n$/);
    const imported = await importFile('old.csv', changed.stdout);
    assert.match(imported.stdout, /\b0 created, 0 unchanged, 2 replaced\b/);
    const again = await exportOf(database, '--at', since, '--changed');
    assert.match(
      again.stderr,
      /^0 changed plants printed from .*; 2 newer .*\nWARNING: no plant of this store has other content now than at \S+Z; .* with --database\n$/,
    );
    const nothing = await importFile('nothing.csv', again.stdout);
    assert.match(nothing.stdout, /^0 rows: /);
    assert.equal(nothing.stderr, 'WARNING: no file has a row, so nothing was sent\n');
    assert.equal((await exportOf(database, '--at', since)).stdout, right);

    // Import removes no plant, but the page lists the new ones for `copy --except`.
    const ids = await under.sql(database, newIdsAsText(under, since));
    writeFileSync(join(folder, 'ids.txt'), ids.map(({ id }) => `${id}\n`).join(''));
    const target = await under.newDatabase();
    const copied = await commands.run({
      args: ['copy', '--from', database, '--to', target, '--except', 'ids.txt'],
    });
    assert.match(copied.stdout, /^left out 2 plants with 2 revisions$/m);
    assert.equal((await exportOf(target)).stdout, right);
  });
