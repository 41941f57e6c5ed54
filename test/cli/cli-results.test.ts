import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { text as readText } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { type NewPlant, newPlantJson } from '../../src/core/contract/plant.ts';
import { hashToken } from '../../src/core/tokens/token.ts';
import { commandProcess } from '../harness/command-lines.ts';
import { plantWrite } from '../harness/plant-write.ts';
import { type Finished, runProgram, startProgram } from '../harness/program.ts';
import { numbered, openNewStore, pathOf, sqliteUnderTest } from '../harness/store-under-test.ts';

const sqlite = sqliteUnderTest();
const commands = commandProcess();

/** A store whose only token is "nursery, east". The plants with the name "copied in" have another. */
async function storeWith(plants: NewPlant[]): Promise<string> {
  await using store = await openNewStore(sqlite);
  const token = { hash: '0'.repeat(64), label: 'nursery, east', createdAt: Date.now(), expiresAt: null };
  await store.tokenTable.createToken(token);
  await store.commit(plants.map(plant => plantWrite(plant, plant.name === 'copied in' ? 2 ** 31 : 1)));
  return store.database;
}

/** Runs commands on a database one after the other. @returns the result of each */
function run<const Lines extends readonly (string | readonly string[])[]>(
  database: string,
  ...lines: Lines
): Promise<{ -readonly [Index in keyof Lines]: Finished }> {
  const finished = lines.map(line => {
    const args = typeof line === 'string' ? line.split(' ') : line;
    return commands.run({ args: [...args, '--database', database] });
  });
  return Promise.all(finished) as Promise<{ [Index in keyof Lines]: Finished }>;
}

function jsonLines({ stdout }: Finished) {
  return stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line));
}

test('token create prints only the token, and token list has no part of it and only reads', async () => {
  const database = await sqlite.newDatabase();
  const [created, , revoked, again] = await run(
    database,
    ['token', 'create', 'field app', '--expires', '90d'],
    ['token', 'create', 'lost phone'],
    ['token', 'revoke', 'lost phone'],
    ['token', 'create', 'lost phone'],
  );
  assert.match(created.stderr, /^created a new store at (\S+plants\.db)\ncreated token "field app" in \1\n$/);
  assert.match(created.stdout, /^plant_[0-9A-Za-z]{36}\n$/);
  assert.deepEqual([created.exitCode, revoked.exitCode, revoked.stdout], [0, 0, '']);
  assert.match(revoked.stderr, /^revoked token "lost phone" in /);
  assert.equal(again.exitCode, 1, 'the label of a revoked token cannot be used again');

  // Opening the store for writing would change the journal mode in the file back to WAL.
  await sqlite.sql(database, 'PRAGMA journal_mode = DELETE');
  const before = readFileSync(pathOf(database));
  const [listed, json] = await run(database, 'token list', 'token list --json');
  assert.deepEqual(readFileSync(pathOf(database)), before);
  const [valid, lost] = jsonLines(json);
  const never = { revoked: null, last_used: null };
  assert.deepEqual(valid, { ...valid, label: 'field app', valid: true, ...never });
  assert.deepEqual(lost, { ...lost, label: 'lost phone', valid: false, expires: null });
  assert.equal(Date.parse(valid.expires) - Date.parse(valid.created), 90 * 86_400_000);
  assert.ok(Date.parse(lost.revoked) >= Date.parse(lost.created));
  const rows = listed.stdout.trimEnd().split('\n');
  assert.deepEqual(
    rows.map(line => line.split(/ {2,}/)),
    [
      ['LABEL', 'CREATED', 'EXPIRES', 'STATE', 'LAST USED'],
      ['field app', valid.created, valid.expires, 'valid', '-'],
      ['lost phone', lost.created, 'never', `revoked ${lost.revoked}`, '-'],
    ],
  );
  const secret = created.stdout.trim();
  for (const hidden of [secret.slice(6, 20), hashToken(secret)])
    assert.ok(!(listed.stdout + json.stdout).includes(hidden));
});

test('a token that another program wrote is listed as it is, and can be revoked', async () => {
  const database = await sqlite.newDatabase();
  // Only a new label has no blank at an end.
  const label = 'written ';
  const [created] = await run(database, ['token', 'create', 'new\u00a0'], 'token create other');
  assert.equal(created.exitCode, 2);
  const cases: [change: string, listed: RegExp, json: object][] = [
    [`expires_at = ${2n ** 63n - 1n}`, / never +valid +2026-01-02/, { valid: true, expires: null }],
    [`expires_at = ${-(2n ** 62n)}`, / -4611686018427388000 +expired /, { expires: '-4611686018427388000' }],
    [`created_at = ${2n ** 62n}`, / 4611686018427388000 +/, { created: '4611686018427388000' }],
    [`revoked_at = ${8.64e15 + 1}`, / revoked 8640000000000001 /, { revoked: '8640000000000001' }],
  ];
  for (const [change, says, expected] of cases) {
    await sqlite.sql(
      database,
      `UPDATE token SET label = '${label}', last_used_day = '2026-01-02', ${change}`,
    );
    const [listed, inJson] = await run(database, 'token list', 'token list --json');
    assert.match(listed.stdout, says);
    assert.partialDeepStrictEqual(jsonLines(inJson)[0], { ...expected, label, last_used: '2026-01-02' });
  }
  const [revoked] = await run(database, ['token', 'revoke', label]);
  assert.equal(revoked.exitCode, 0);
});

const ODD_PLANTS: NewPlant[] = [
  { id: -(2n ** 63n), name: 'smallest', tag: '' },
  { id: -1n, name: 'comma, comma', tag: 'a,b' },
  { id: 0n, name: 'the "quoted"', tag: '"' },
  { id: 1n, name: 'line\nbreak', tag: 'carriage\r\nreturn' },
  { id: 2n, name: '', tag: '' },
  { id: 3n, name: '' },
  { id: 4n, name: ' spaces ', tag: '\t' },
  { id: 5n, name: '=1+1', tag: "'" },
  { id: 2n ** 53n, name: 'ceiba 🌳', tag: 'é' },
  { id: 2n ** 53n + 1n, name: 'its neighbour' },
  { id: 2n ** 63n - 1n, name: 'largest' },
];

test('export prints every plant exactly, in the order of ids', async () => {
  const database = await storeWith(ODD_PLANTS.toReversed());
  const [csv, jsonl] = await run(database, 'export', 'export --format jsonl');
  const expected = [
    'id,name,tag',
    '-9223372036854775808,smallest,""',
    '-1,"comma, comma","a,b"',
    '0,"the ""quoted""",""""',
    '1,"line\nbreak","carriage\r\nreturn"',
    '2,"",""',
    '3,"",',
    '4, spaces ,\t',
    "5,=1+1,'",
    '9007199254740992,ceiba 🌳,é',
    '9007199254740993,its neighbour,',
    '9223372036854775807,largest,',
    '',
  ].join('\n');
  assert.deepEqual(csv, { exitCode: 0, stdout: expected, stderr: '11 plants printed\n' });
  assert.equal(jsonl.stdout, ODD_PLANTS.map(plant => `${newPlantJson(plant)}\n`).join(''));

  const [emptyCsv, emptyJsonl] = await run(await storeWith([]), 'export', 'export --format jsonl');
  assert.deepEqual([emptyCsv.stdout, emptyJsonl.stdout], ['id,name,tag\n', '']);
});

const HISTORY: NewPlant[] = [
  { id: 2n ** 53n + 1n, name: 'Monstera', tag: 'houseplant' },
  { id: 2n ** 53n + 1n, name: 'Monstera deliciosa', tag: 'houseplant' },
  { id: 2n ** 53n, name: 'Monster', tag: '' },
  { id: -(2n ** 63n), name: 'Ficus \u001b[2J', tag: '\u202e' },
  { id: -(2n ** 63n), name: 'Monstera', tag: 'tree' },
  { id: 2n ** 53n + 3n, name: 'copied in' },
];

test('export --revisions, show and stats print the whole history, list the latest revisions', async () => {
  const database = await storeWith(HISTORY);
  const history = 'export --revisions';
  const [csv, jsonl] = await run(database, history, `${history} --format jsonl`);
  const [, time] = /^-9223372036854775808,2,Monstera,tree,(20[\dT:.-]{20}\dZ),/m.exec(csv.stdout)!;
  assert.deepEqual(csv.stdout.split('\n'), [
    'id,revision,name,tag,recorded_at,recorded_by',
    `-9223372036854775808,1,Ficus \u001b[2J,\u202e,${time},"nursery, east"`,
    `-9223372036854775808,2,Monstera,tree,${time},"nursery, east"`,
    `9007199254740992,1,Monster,"",${time},"nursery, east"`,
    `9007199254740993,1,Monstera,houseplant,${time},"nursery, east"`,
    `9007199254740993,2,Monstera deliciosa,houseplant,${time},"nursery, east"`,
    `9007199254740995,1,copied in,,${time},2147483648`,
    '',
  ]);
  const ficus = String.raw`{"id":-9223372036854775808,"name":"Ficus \u001b[2J","tag":"\u202e","revision":1`;
  const recorded = `"recorded_at":"${time}","recorded_by":"nursery, east"}`;
  const lines = jsonl.stdout.split('\n');
  assert.equal(lines[0], `${ficus.replace(String.raw`\u202e`, '\u202e')},${recorded}`);
  assert.equal(
    lines[5],
    `{"id":9007199254740995,"name":"copied in","revision":1,${recorded.replace('nursery, east', '2147483648')}`,
  );

  // No terminal gets control characters of a plant.
  const id = '-9223372036854775808';
  const [shown, shownJson, stats, statsJson] = await run(
    database,
    `show ${id}`,
    `show ${id} --json`,
    'stats',
    'stats --json',
  );
  const first = String.raw`{"name":"Ficus \u001b[2J","tag":"\u202e"}`;
  const second = '{"name":"Monstera","tag":"tree"}';
  const text = [first, second].map(
    (plant, index) => `\nrevision ${index + 1}  ${time}  by nursery, east  ${plant}`,
  );
  assert.deepEqual(shown, { exitCode: 0, stdout: `plant ${id}${text.join('')}\n`, stderr: '' });
  assert.equal(shownJson.stdout, `{"id":${id},"revisions":[${ficus},${recorded},${lines[1]}]}\n`);
  const { bytes, ...counts } = JSON.parse(statsJson.stdout);
  assert.deepEqual(counts, { plants: 4, revisions: 6, tokens: 1 });
  const size = String.raw`0\.\d+ MB \(${bytes.toLocaleString('en')} bytes\)`;
  assert.match(stats.stdout, new RegExp(`^plants {5}4\nrevisions {2}6\ntokens {5}1\nbytes {6}${size}\n$`));
  const [byTag, byTagJson] = await run(database, 'stats --by-tag', 'stats --by-tag --json');
  assert.equal(
    byTag.stdout,
    'plants  tag\n1       ""\n1       "houseplant"\n1       "tree"\n1       without a tag\n',
  );
  assert.deepEqual(JSON.parse(byTagJson.stdout), {
    tags: ['', 'houseplant', 'tree'].map(tag => ({ tag, plants: 1 })),
    untagged: 1,
    others: 0,
  });

  const selections: [args: string, names: string[]][] = [
    ['', ['Monstera', 'Monster', 'Monstera deliciosa', 'copied in']],
    ['--tag houseplant', ['Monstera deliciosa']],
    ['--tag=', ['Monster']],
    ['--name Monstera', ['Monstera', 'Monstera deliciosa']],
    ['--name Ficus', []],
    ['--name ×MÖNSTERA', ['Monstera', 'Monstera deliciosa']],
    ['--from 9007199254740993', ['Monstera deliciosa', 'copied in']],
    ['--from=-9223372036854775808 --limit 2', ['Monstera', 'Monster']],
    ['--limit 1 --name Monster --from 0', ['Monster']],
  ];
  for (const [args, names] of selections) {
    const [list, json] = await run(database, `list ${args}`.trim(), `list --json ${args}`.trim());
    assert.deepEqual(list.stdout.match(/(?<="name":").*?(?=")/g) ?? [], names, args);
    assert.equal(list.stderr, `${names.length} plant${names.length === 1 ? '' : 's'} printed\n`);
    assert.ok(lines.join('\n').includes(json.stdout.split('\n')[0]!), 'the form of `export --revisions`');
  }
  const [{ stdout }] = await run(database, 'list');
  assert.equal(stdout.split('\n')[0], `plant ${id}  revision 2  ${time}  by nursery, east  ${second}`);
  assert.match(stdout, /^plant 9007199254740992 {6}revision 1 /m);
});

test('export to a slow reader is complete, and export to a closed reader ends without a message', async () => {
  const plants = numbered(30_000, 'x'.repeat(30));
  const database = await storeWith(plants);
  const start = () => startProgram(['export', '--database', database]);
  const slow = start();
  const summary = readText(slow.stderr!);
  const expected = ['id,name,tag', ...plants.map(({ id, name }) => `${id},${name},`)];
  let lines = 0;
  for await (const line of createInterface(slow.stdout!)) {
    assert.equal(line, expected[lines]);
    if (++lines % 3_000 === 0) await wait(20);
  }
  assert.equal(lines, expected.length);
  assert.equal(await summary, '30,000 plants printed\n');

  const closed = start();
  const said = readText(closed.stderr!);
  const ended = once(closed, 'exit');
  await once(closed.stdout!, 'data');
  closed.stdout!.destroy();
  assert.deepEqual([await ended, await said], [[141, null], '']);

  const prefix = ['sh', '-c', 'exec "$@" >&-', 'sh'];
  const { exitCode, stderr } = await runProgram(['export', '--database', database], { prefix });
  assert.deepEqual([exitCode, stderr.split(';')[0]], [1, 'plant-store: stdout is closed or discarded']);
});
