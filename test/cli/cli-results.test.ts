import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { text as readText } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { hashToken } from '../../src/auth/token.ts';
import { type NewPlant, newPlantJson } from '../../src/contract/plant.ts';
import { plantWrite } from '../../src/store/audit/checksum.ts';
import { commandProcess } from '../harness/command-lines.ts';
import { type Finished, runProgram, startProgram } from '../harness/program.ts';
import { openNewStore, sqliteUnderTest } from '../harness/store-under-test.ts';

/** Far longer than an export takes on a slow machine. */
const EXPORT_MS_MAX = 30_000;

const sqlite = sqliteUnderTest();
const commands = commandProcess();

/**
 * Creates a store whose only token is "nursery, east".
 *
 * @param copied plants of another token
 */
async function storeWith(plants: NewPlant[], copied: NewPlant[] = []): Promise<string> {
  await using store = await openNewStore(sqlite);
  const token = { hash: '0'.repeat(64), label: 'nursery, east', createdAt: Date.now(), expiresAt: null };
  await store.createToken(token);
  await store.commit([
    ...plants.map(plant => plantWrite(plant, 1)),
    ...copied.map(plant => plantWrite(plant, 2 ** 31)),
  ]);
  return store.database;
}

/** Runs commands on a database one after the other. @returns the result of each */
function run(database: string, ...lines: (string | string[])[]): Promise<Finished[]> {
  return Promise.all(
    lines.map(line => {
      const args = typeof line === 'string' ? line.split(' ') : line;
      return commands.run({ args: [...args, '--database', database] });
    }),
  );
}

test('token create prints only the token; token list only reads, has no part of it, and prints JSON', async () => {
  const database = await sqlite.newDatabase();
  const path = database.replace('sqlite:', '');
  const [created, , , revoked, again] = (await run(
    database,
    ['token', 'create', 'field app', '--expires', '90d'],
    ['token', 'create', 'no expiry'],
    ['token', 'create', 'lost phone', '--expires', '48h'],
    ['token', 'revoke', 'lost phone'],
    ['token', 'create', 'lost phone'],
  )) as [Finished, Finished, Finished, Finished, Finished];
  assert.equal(again.exitCode, 1, 'the label of a revoked token cannot be used again');
  assert.match(created.stderr, /^created a new store at (\S+plants\.db)\ncreated token "field app" in \1\n$/);
  assert.match(created.stdout, /^plant_[0-9A-Za-z]{36}\n$/);
  assert.deepEqual([created.exitCode, revoked.exitCode, revoked.stdout], [0, 0, '']);
  assert.match(revoked.stderr, /^revoked token "lost phone" in /);

  // Opening the store for writing would change the journal mode in the file back to WAL.
  await sqlite.sql(database, 'PRAGMA journal_mode = DELETE');
  const before = readFileSync(path);
  const [listed, json] = (await run(database, 'token list', 'token list --json')) as [Finished, Finished];
  assert.deepEqual(readFileSync(path), before);
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
  const today = inDays(0);
  const rows = listed.stdout.trimEnd().split('\n');
  assert.deepEqual(
    rows.map(line => line.split(/ {2,}/)),
    [
      ['LABEL', 'CREATED', 'EXPIRES', 'STATE', 'LAST USED'],
      ['field app', today, inDays(90), 'valid', '-'],
      ['no expiry', today, 'never', 'valid', '-'],
      ['lost phone', today, inDays(2), `revoked ${today}`, '-'],
    ],
  );
  const secret = created.stdout.trim();
  for (const hidden of [secret.slice(6, 20), hashToken(secret)])
    assert.ok(!(listed.stdout + json.stdout).includes(hidden));
  const [valid, endless, lost] = json.stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line));
  const { label, valid: isValid, revoked: revokedAt, last_used: lastUsed } = valid;
  assert.deepEqual([label, isValid, revokedAt, lastUsed], ['field app', true, null, null]);
  assert.equal(Date.parse(valid.expires) - Date.parse(valid.created), 90 * 86_400_000);
  assert.deepEqual([endless.expires, lost.label, lost.valid], [null, 'lost phone', false]);
  assert.ok(Date.parse(lost.revoked) >= Date.parse(lost.created));
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
  const [csv, jsonLines] = await run(database, 'export', 'export --format jsonl');
  assert.equal(csv!.exitCode, 0);
  assert.equal(
    csv!.stdout,
    [
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
    ].join('\n'),
  );
  assert.equal(csv!.stderr, '11 plants printed\n');
  assert.equal(jsonLines!.stdout, ODD_PLANTS.map(plant => `${newPlantJson(plant)}\n`).join(''));

  const [emptyCsv, emptyJson] = await run(await storeWith([]), 'export', 'export --format jsonl');
  assert.deepEqual([emptyCsv!.stdout, emptyJson!.stdout], ['id,name,tag\n', '']);
  const [one] = await run(database, 'list --limit 1');
  assert.equal(one!.stderr, '1 plant printed\n');
});

test('export --revisions prints the whole history', async () => {
  const plants = [
    { id: 7n, name: 'old' },
    { id: 7n, name: 'new', tag: '' },
    { id: -7n, name: 'other' },
  ];
  const database = await storeWith(plants, [{ id: 8n, name: 'copied in' }]);
  const history = 'export --revisions';
  const results = await run(database, history, `${history} --format jsonl`, 'export');
  const [, time] = /^-7,1,other,,(20[\dT:.-]{20}\dZ),/m.exec(results[0]!.stdout)!;
  const recorded = `"recorded_at":"${time}","recorded_by":"nursery, east"}`;
  assert.deepEqual(
    results.map(({ stdout }) => stdout.split('\n')),
    [
      [
        'id,revision,name,tag,recorded_at,recorded_by',
        `-7,1,other,,${time},"nursery, east"`,
        `7,1,old,,${time},"nursery, east"`,
        `7,2,new,"",${time},"nursery, east"`,
        `8,1,copied in,,${time},2147483648`,
        '',
      ],
      [
        `{"id":-7,"name":"other","revision":1,${recorded}`,
        `{"id":7,"name":"old","revision":1,${recorded}`,
        `{"id":7,"name":"new","tag":"","revision":2,${recorded}`,
        `{"id":8,"name":"copied in","revision":1,${recorded.replace('nursery, east', '2147483648')}`,
        '',
      ],
      ['id,name,tag', '-7,other,', '7,new,""', '8,copied in,', ''],
    ],
  );
});

/** Revisions of three plants; one name has a control character. */
const HISTORY: NewPlant[] = [
  { id: 2n ** 53n + 1n, name: 'Monstera', tag: 'houseplant' },
  { id: 2n ** 53n + 1n, name: 'Monstera deliciosa', tag: 'houseplant' },
  { id: 2n ** 53n, name: 'Monster', tag: '' },
  { id: -(2n ** 63n), name: 'Ficus\u001b', tag: 'houseplant' },
  { id: -(2n ** 63n), name: 'Monstera', tag: 'tree' },
];

test('list prints the latest revision of each selected plant, in the order of ids', async () => {
  const database = await storeWith(HISTORY);
  const cases: [args: string, names: string[]][] = [
    ['', ['Monstera', 'Monster', 'Monstera deliciosa']],
    ['--tag houseplant', ['Monstera deliciosa']],
    ['--tag=', ['Monster']],
    ['--name Monstera', ['Monstera', 'Monstera deliciosa']],
    ['--name Ficus', []],
    ['--from 9007199254740993', ['Monstera deliciosa']],
    ['--from=-9223372036854775808 --limit 2', ['Monstera', 'Monster']],
    ['--limit 1 --name Monster --from 0', ['Monster']],
  ];
  const results = await run(database, ...cases.map(([args]) => `list ${args}`.trim()));
  const found = results.map(({ stdout }) => stdout.match(/(?<="name":").*?(?=")/g) ?? []);
  assert.deepEqual(
    found,
    cases.map(([, names]) => names),
  );
  const [first, second] = results[0]!.stdout.split('\n');
  assert.match(second!, /^plant 9007199254740992 {6}revision 1 /);
  const start = 'plant -9223372036854775808  revision 2  2';
  assert.ok(
    first!.startsWith(start) && first!.endsWith('Z  by nursery, east  {"name":"Monstera","tag":"tree"}'),
  );
});

test('JSON has exact ids, as numbers or as text, and show prints one object', async () => {
  const database = await storeWith(HISTORY.slice(0, 2));
  const [shown, ...results] = await run(
    database,
    'show 9007199254740993 --json',
    'show 9007199254740993 --json --ids text',
    'list --json --ids text',
    'export --format jsonl --ids text',
    'export --format jsonl --revisions --ids text',
  );
  const revision = (number: number, name: string) =>
    String.raw`\{"id":9007199254740993,"name":"${name}","tag":"houseplant","revision":${number},"recorded_at":"[^"]+","recorded_by":"nursery, east"\}`;
  const [first, second] = [revision(1, 'Monstera'), revision(2, 'Monstera deliciosa')];
  const expected = [
    String.raw`\{"id":9007199254740993,"revisions":\[${first},${second}\]\}\n`,
    String.raw`${second}\n`,
    String.raw`\{"id":9007199254740993,"name":"Monstera deliciosa","tag":"houseplant"\}\n`,
    String.raw`${first}\n${second}\n`,
  ];
  assert.match(shown!.stdout, new RegExp(`^${expected[0]}$`));
  for (const [index, { stdout }] of results.entries())
    assert.match(stdout, new RegExp(`^${expected[index]!.replaceAll('9007199254740993', '"$&"')}$`));
});

test('a token that another program wrote is listed as it is, and can be revoked', async () => {
  const database = await sqlite.newDatabase();
  const label = 'written ';
  await run(database, 'token create longest --expires 999999d', 'token create other');
  await sqlite.sql(
    database,
    `UPDATE token SET label = '${label}', last_used_day = '2026-01-02' WHERE id = 2`,
  );
  const [beyond, far] = [8.64e15 + 1, 2n ** 62n];
  const cases: [change: string, listed: RegExp, json: string][] = [
    [`expires_at = ${beyond}`, / never +valid +2026-01-02/, '"valid":true'],
    [`expires_at = ${2n ** 63n - 1n}`, / never +valid /, '"expires":null'],
    [`expires_at = ${-far}`, / -4611686018427388000 +expired /, '"expires":"-4611686018427388000"'],
    [`created_at = ${far}`, / 4611686018427388000 +/, '"created":"4611686018427388000"'],
    [`revoked_at = ${beyond}`, / revoked 8640000000000001 /, '"revoked":"8640000000000001"'],
    ['revoked_at = NULL, expires_at = NULL, last_used_day = NULL', / never +valid +-$/, '"last_used":null'],
  ];
  for (const [change, says, json] of cases) {
    await sqlite.sql(database, `UPDATE token SET ${change} WHERE id = 2`);
    const [listed, inJson] = await run(database, 'token list', 'token list --json');
    const [, longest, other] = listed!.stdout.split('\n');
    assert.match(longest!, /^longest .* 4\d{3}-\d\d-\d\d +valid /);
    assert.match(other!, says);
    assert.ok(inJson!.stdout.includes(json), inJson!.stdout);
  }
  // Only a new label has no blank at an end.
  const [created, revoked] = await run(
    database,
    ['token', 'create', 'new\u00a0'],
    ['token', 'revoke', label],
  );
  assert.deepEqual([created!.exitCode, revoked!.exitCode], [2, 0]);
});

test('stats prints the counts and the size of the store, with --json as one object', async () => {
  const database = await storeWith(HISTORY);
  const [stats, json] = await run(database, 'stats', 'stats --json');
  const { bytes, ...counts } = JSON.parse(json!.stdout);
  assert.deepEqual(counts, { plants: 3, revisions: 5, tokens: 1 });
  const size = String.raw`0\.\d+ MB \(${bytes.toLocaleString('en')} bytes\)`;
  const text = `^plants {5}3\nrevisions {2}5\ntokens {5}1\nbytes {6}${size}\n$`;
  assert.match(stats!.stdout, new RegExp(text));
});

test('no terminal gets control characters of a plant', async () => {
  const database = await storeWith([
    { id: -(2n ** 63n), name: 'clear \u001b[2J screen', tag: '\u202e' },
    { id: -(2n ** 63n), name: '\u009b2J\n' },
  ]);
  const [shown, ...others] = await run(
    database,
    'show -9223372036854775808',
    'show -9223372036854775808 --json',
    'list --json',
  );
  assert.deepEqual([shown!.exitCode, shown!.stderr], [0, '']);
  const [title, first, second, rest] = shown!.stdout.split('\n');
  assert.equal(title, 'plant -9223372036854775808');
  assert.match(first!, /^revision 1 .* by nursery, east .*"clear \\u001b\[2J screen","tag":"\\u202e"}$/);
  assert.match(second!, /^revision 2 .*{"name":"\\u009b2J\\n"}$/);
  assert.equal(rest, '');
  for (const { stdout } of others) assert.match(stdout, /^[^\p{Cc}]*"name":"\\u009b2J\\n"[^\p{Cc}]*\n$/u);
});

const MANY = Array.from({ length: 30_000 }, (_, id) => ({
  id: BigInt(id),
  name: `plant ${id} ${'x'.repeat(20)}`,
}));

test('export to a slow reader is complete, and export to a closed reader ends without a message', async () => {
  const database = await storeWith(MANY);
  const start = () => startProgram(['export', '--database', database], { timeout: EXPORT_MS_MAX });
  const slow = start();
  const summary = readText(slow.stderr!);
  const expected = ['id,name,tag', ...MANY.map(({ id, name }) => `${id},${name},`)];
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
  const [exitCode, signal] = await ended;
  assert.deepEqual([exitCode, signal], [141, null]);
  assert.equal(await said, '');
});

test('export fails if stdout is closed', async () => {
  const prefix = ['sh', '-c', 'exec "$@" >&-', 'sh'];
  const args = ['export', '--database', await storeWith(HISTORY)];
  const { exitCode, stderr } = await runProgram(args, { prefix });
  assert.deepEqual([exitCode, stderr.split(';')[0]], [1, 'plant-store: stdout is closed or discarded']);
});
