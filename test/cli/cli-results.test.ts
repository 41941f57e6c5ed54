import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { text as readText } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { hashToken } from '../../src/auth/token.ts';
import { openApiJson } from '../../src/contract/openapi.ts';
import { type NewPlant, newPlantJson } from '../../src/contract/plant.ts';
import { plantWrite } from '../../src/store/checksum.ts';
import { openReader } from '../../src/store/open-store.ts';
import type { PlantRevision } from '../../src/store/plant-store.ts';
import { runCommandLines } from '../harness/command-lines.ts';
import { LoggingClient } from '../harness/logging-client.ts';
import { type Finished, runProgram, startProgram, startServe } from '../harness/program.ts';
import { openNewStore, openTokens, sqliteUnderTest } from '../harness/store-under-test.ts';
import { testFolder } from '../harness/test-folder.ts';

/** The documented time until a revocation takes effect. */
const REVOCATION_MS_MAX = 5_000;

/** Far longer than an export takes on a slow machine. */
const EXPORT_MS_MAX = 30_000;

const folder = testFolder();
const sqlite = sqliteUnderTest();

/** Creates a store with these plants. Its first token is "nursery, east". */
async function storeWith(plants: NewPlant[], recordedBy = 1): Promise<string> {
  await using store = await openNewStore(sqlite);
  const token = { hash: '0'.repeat(64), label: 'nursery, east', createdAt: Date.now(), expiresAt: null };
  await store.createToken(token);
  await store.commit(plants.map(plant => plantWrite(plant, recordedBy)));
  return store.database;
}

/** Runs commands on a database one after the other. @returns the result of each */
function run(database: string, ...commands: string[][]): Promise<Finished[]> {
  return runCommandLines(
    commands.map(args => ({ args: [...args, '--database', database] })),
    folder,
  );
}

test('token create prints only the token; neither token list nor the store contains it', async () => {
  const database = await sqlite.newDatabase();
  const [created, , , revoked, listed] = (await run(
    database,
    ['token', 'create', 'field app', '--expires', '90d'],
    ['token', 'create', 'no expiry'],
    ['token', 'create', 'lost phone', '--expires', '48h'],
    ['token', 'revoke', 'lost phone'],
    ['token', 'list'],
  )) as [Finished, Finished, Finished, Finished, Finished];
  assert.equal(created.exitCode, 0);
  const made =
    /^created a new store at sqlite:\S+plants\.db\ncreated token "field app" in sqlite:\S+plants\.db\n$/;
  assert.match(created.stderr, made);
  assert.match(created.stdout, /^plant_[0-9A-Za-z]{36}\n$/);
  assert.deepEqual([revoked.exitCode, revoked.stdout], [0, '']);
  assert.match(revoked.stderr, /^revoked token "lost phone" in /);

  assert.deepEqual([listed.exitCode, listed.stderr], [0, '']);
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
  for (const hidden of [secret, secret.slice(6, 20), hashToken(secret)])
    assert.ok(!listed.stdout.includes(hidden));
  await using store = await openTokens(database);
  assert.ok(!JSON.stringify(await store.tokensChangedSince(0)).includes(secret.slice(6)));
});

test('token list only reads, and token revoke creates no store', async () => {
  const database = await sqlite.newDatabase();
  const path = database.replace('sqlite:', '');
  const missing = await run(database, ['token', 'list'], ['token', 'revoke', 'first']);
  for (const { exitCode, stdout, stderr } of missing) {
    assert.deepEqual([exitCode, stdout], [1, '']);
    assert.match(stderr, /there is no plant store at /);
  }
  assert.throws(() => readFileSync(path), { code: 'ENOENT' });
  await run(database, ['token', 'create', 'first']);
  // Opening the store for writing would change the journal mode in the file back to WAL.
  await sqlite.sql(database, 'PRAGMA journal_mode = DELETE');
  const before = readFileSync(path);
  assert.match((await run(database, ['token', 'list']))[0]!.stdout, /^first /m);
  assert.deepEqual(readFileSync(path), before);
});

test('the service accepts and rejects tokens that are created and revoked while it runs', async () => {
  const database = await sqlite.newDatabase();
  await using serve = await startServe(database);
  const [created] = await run(database, ['token', 'create', 'second']);
  const client = new LoggingClient(serve.url, created!.stdout.trim(), []);
  const plant = { id: 1n, name: 'Monstera' };
  assert.equal((await client.send(plant)).response?.status, 200, 'accepted at once');

  const [revoked] = await run(database, ['token', 'revoke', 'second']);
  assert.equal(revoked!.exitCode, 0);
  const revokedAt = performance.now();
  while ((await client.send(plant)).response?.status !== 401) {
    assert.ok(performance.now() - revokedAt < REVOCATION_MS_MAX, 'it is still accepted');
    await wait(20);
  }
  const { response } = await client.send(plant, { token: serve.token });
  assert.equal(response?.status, 200, 'the other token is still valid');
  await client.close();
  await serve.stop('SIGTERM');
  const [again, listed] = await run(database, ['token', 'create', 'second'], ['token', 'list']);
  assert.equal(again!.exitCode, 1, 'the label of a revoked token cannot be used again');
  const today = new Date().toISOString().slice(0, 10);
  assert.match(listed!.stdout, new RegExp(`^first .* valid +${today}$`, 'm'));
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
  const [csv, jsonLines] = await run(database, ['export'], ['export', '--format', 'jsonl']);
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

  const [emptyCsv, emptyJson] = await run(await storeWith([]), ['export'], ['export', '--format', 'jsonl']);
  assert.deepEqual([emptyCsv!.stdout, emptyJson!.stdout], ['id,name,tag\n', '']);
  const [one] = await run(database, ['list', '--limit', '1']);
  assert.equal(one!.stderr, '1 plant printed\n');
});

test('export --revisions prints the whole history', async () => {
  const database = await storeWith([
    { id: 7n, name: 'old' },
    { id: 7n, name: 'new', tag: '' },
    { id: -7n, name: 'other' },
  ]);
  await using reader = await openReader(database);
  const time = new Date((await reader.revisionsOf(7n))[0]!.recordedAt).toISOString();
  const history = ['export', '--revisions'];
  const results = await run(database, history, [...history, '--format', 'jsonl'], ['export']);
  const recorded = `"recorded_at":"${time}","recorded_by":"nursery, east"}`;
  assert.deepEqual(
    results.map(({ stdout }) => stdout.split('\n')),
    [
      [
        'id,revision,name,tag,recorded_at,recorded_by',
        `-7,1,other,,${time},"nursery, east"`,
        `7,1,old,,${time},"nursery, east"`,
        `7,2,new,"",${time},"nursery, east"`,
        '',
      ],
      [
        `{"id":-7,"name":"other","revision":1,${recorded}`,
        `{"id":7,"name":"old","revision":1,${recorded}`,
        `{"id":7,"name":"new","tag":"","revision":2,${recorded}`,
        '',
      ],
      ['id,name,tag', '-7,other,', '7,new,""', ''],
    ],
  );
});

test('export and show print the token id if the token is not in the store', async () => {
  const database = await storeWith([{ id: 7n, name: 'copied in' }], 2 ** 31);
  const [csv, shown] = await run(database, ['export', '--revisions'], ['show', '7']);
  assert.match(csv!.stdout, /^7,1,copied in,,[^,]+,2147483648$/m);
  assert.match(shown!.stdout, / by 2147483648 {2}{/);
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
  const commands = cases.flatMap(([args]) =>
    ['', '--json'].map(json => `list ${args} ${json}`.split(' ').filter(each => each !== '')),
  );
  const results = await run(database, ...commands);
  for (const [index, [args, names]] of cases.entries()) {
    const [text, json] = results.slice(2 * index, 2 * index + 2);
    assert.deepEqual([text!.exitCode, json!.exitCode], [0, 0], args);
    assert.deepEqual(
      [...text!.stdout.matchAll(/"name":"(.*?)"/g)].map(([, name]) => name),
      names,
      args,
    );
    const lines = json!.stdout.split('\n').slice(0, -1);
    assert.deepEqual(
      lines.map(line => JSON.parse(line).name),
      names,
      args,
    );
  }
  const [first, second] = results[0]!.stdout.split('\n');
  assert.match(second!, /^plant 9007199254740992 {6}revision 1 /);
  const time = String.raw`\d{4}-\d\d-\d\dT[\d:.]{12}Z`;
  assert.match(
    first!,
    new RegExp(
      `^plant -9223372036854775808  revision 2  ${time}  by nursery, east  {"name":"Monstera","tag":"tree"}$`,
    ),
  );
});

test('JSON has exact ids, as numbers or as text, and show prints one object', async () => {
  const database = await storeWith(HISTORY.slice(0, 2));
  const show = ['show', '9007199254740993', '--json'];
  const text = ['--ids', 'text'];
  const [shown, ...results] = await run(
    database,
    show,
    [...show, ...text],
    ['list', '--json', ...text],
    ['export', '--format', 'jsonl', ...text],
    ['export', '--format', 'jsonl', '--revisions', ...text],
  );
  const recorded = (await readRevisions(database, 2n ** 53n + 1n)).map(({ recordedAt }, index) => {
    const time = new Date(recordedAt).toISOString();
    return `"tag":"houseplant","revision":${index + 1},"recorded_at":"${time}","recorded_by":"nursery, east"}`;
  });
  const first = `{"id":9007199254740993,"name":"Monstera",${recorded[0]}`;
  const second = `{"id":9007199254740993,"name":"Monstera deliciosa",${recorded[1]}`;
  assert.equal(shown!.stdout, `{"id":9007199254740993,"revisions":[${first},${second}]}\n`);
  const expected = [
    shown!.stdout,
    `${second}\n`,
    '{"id":9007199254740993,"name":"Monstera deliciosa","tag":"houseplant"}\n',
    `${first}\n${second}\n`,
  ];
  assert.deepEqual(
    results.map(({ stdout }) => stdout),
    expected.map(json => json.replaceAll('9007199254740993', '"9007199254740993"')),
  );
});

async function readRevisions(database: string, id: bigint): Promise<PlantRevision[]> {
  await using reader = await openReader(database);
  return await reader.revisionsOf(id);
}

test('list --json and show --json print no control characters', async () => {
  const database = await storeWith([{ id: 7n, name: '\u009b2J\n' }]);
  for (const { stdout } of await run(database, ['list', '--json'], ['show', '7', '--json']))
    assert.match(stdout, /^[^\p{Cc}]*"name":"\\u009b2J\\n"[^\p{Cc}]*\n$/u);
});

test('token list --json prints each token with times', async () => {
  const database = await sqlite.newDatabase();
  const [empty] = await run(await storeWithoutTokens(), ['token', 'list', '--json']);
  assert.equal(empty!.stdout, '');
  const results = await run(
    database,
    ['token', 'create', 'a "b"', '--expires', '90d'],
    ['token', 'create', 'lost'],
    ['token', 'revoke', 'lost'],
    ['token', 'list', '--json'],
  );
  const tokens = results[3]!.stdout
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line));
  const [valid, lost] = tokens;
  assert.deepEqual([valid.label, valid.valid, valid.revoked, valid.last_used], ['a "b"', true, null, null]);
  assert.equal(Date.parse(valid.expires) - Date.parse(valid.created), 90 * 86_400_000);
  assert.deepEqual([tokens.length, lost.label, lost.valid, lost.expires], [2, 'lost', false, null]);
  assert.ok(Date.parse(lost.revoked) >= Date.parse(lost.created));
});

test('a token that the store has beyond the range of times never expires, and can be revoked', async () => {
  const database = await sqlite.newDatabase();
  await run(database, ['token', 'create', 'longest', '--expires', '999999d'], ['token', 'create', 'beyond']);
  for (const expiresAt of [8.64e15 + 1, 2n ** 63n - 1n]) {
    await sqlite.sql(database, `UPDATE token SET expires_at = ${expiresAt} WHERE label = 'beyond'`);
    const [listed, json] = await run(database, ['token', 'list'], ['token', 'list', '--json']);
    assert.match(listed!.stdout, /^longest .* 4\d{3}-\d\d-\d\d +valid .*\nbeyond +[\d-]+ +never +valid /m);
    assert.match(json!.stdout, /"label":"beyond","valid":true,.*"expires":null/);
  }
  const [, listed] = await run(database, ['token', 'revoke', 'beyond'], ['token', 'list']);
  assert.match(listed!.stdout, /^beyond +[\d-]+ +never +revoked /m);
});

async function storeWithoutTokens(): Promise<string> {
  await using store = await openNewStore(sqlite);
  return store.database;
}

test('a label has no blank at an end, but an older label that has one can be revoked', async () => {
  await using store = await openNewStore(sqlite);
  await store.createToken({ hash: '0'.repeat(64), label: 'older ', createdAt: 0, expiresAt: null });
  const [created, revoked] = await run(
    store.database,
    ['token', 'create', 'older\u00a0'],
    ['token', 'revoke', 'older '],
  );
  assert.deepEqual([created!.exitCode, revoked!.exitCode], [2, 0], created!.stderr + revoked!.stderr);
});

test('stats prints the counts and the size of the store, with --json as one object', async () => {
  const database = await storeWith(HISTORY);
  const [stats, json] = await run(database, ['stats'], ['stats', '--json']);
  const { bytes, ...counts } = JSON.parse(json!.stdout);
  assert.deepEqual(counts, { plants: 3, revisions: 5, tokens: 1 });
  const size = String.raw`0\.\d+ MB \(${bytes.toLocaleString('en')} bytes\)`;
  const text = `^plants {5}3\nrevisions {2}5\ntokens {5}1\nbytes {6}${size}\n$`;
  assert.match(stats!.stdout, new RegExp(text));
});

test('show prints every revision of any id, without control characters', async () => {
  const database = await storeWith([
    { id: -(2n ** 63n), name: 'clear \u001b[2J screen', tag: '\u202e' },
    { id: -(2n ** 63n), name: 'line\nbreak' },
  ]);
  const [shown] = await run(database, ['show', '-9223372036854775808']);
  assert.deepEqual([shown!.exitCode, shown!.stderr], [0, '']);
  const [title, first, second, rest] = shown!.stdout.split('\n');
  assert.equal(title, 'plant -9223372036854775808');
  assert.match(first!, /^revision 1 .* by nursery, east .*"clear \\u001b\[2J screen","tag":"\\u202e"}$/);
  assert.match(second!, /^revision 2 .*{"name":"line\\nbreak"}$/);
  assert.equal(rest, '');
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

test('openapi prints the description that the service serves', async () => {
  const [{ exitCode, stdout }] = (await runCommandLines([{ args: ['openapi'] }], folder)) as [Finished];
  assert.deepEqual([exitCode, stdout.trimEnd()], [0, openApiJson().trimEnd()]);
});
