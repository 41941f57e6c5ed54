import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import packageJson from '../../package.json' with { type: 'json' };
import { openApiJson } from '../../src/client/openapi.ts';
import { commandProcess } from '../harness/command-lines.ts';
import { freePort } from '../harness/free-port.ts';
import { LoggingClient } from '../harness/logging-client.ts';
import { listen } from '../harness/loopback-server.ts';
import { plantWrite } from '../harness/plant-write.ts';
import { assertFailed, type Finished, runProgram, startServe } from '../harness/program.ts';
import { ask } from '../harness/raw-connection.ts';
import { openStore, sqliteUnderTest } from '../harness/store-under-test.ts';
import { testFolder } from '../harness/test-folder.ts';

const folder = testFolder();

/** A store with the plants 1 and -1 and the token "first". */
const database = `sqlite:${join(folder, 'plants.db')}`;
const newer = join(folder, 'newer.db');
{
  await using store = await openStore(database);
  await store.tokenTable.createToken({
    hash: '0'.repeat(64),
    label: 'first',
    createdAt: Date.now(),
    expiresAt: null,
  });
  await store.commit([1n, -1n].map(id => plantWrite({ id, name: `plant ${id}` }, 1)));
  await using _newer = await openStore(`sqlite:${newer}`);
}
const sqlite = sqliteUnderTest();
await sqlite.sql(`sqlite:${newer}`, 'PRAGMA user_version = 99');
const stranger = join(folder, 'stranger.db');
await sqlite.sql(`sqlite:${stranger}`, 'CREATE TABLE account (id)');
const textFile = join(folder, 'text.db');
writeFileSync(textFile, 'id,name,tag\n'.repeat(100));
const emptyFile = join(folder, 'empty');
writeFileSync(emptyFile, '');
const noIds = join(folder, 'no-ids');
writeFileSync(noIds, '# 5\n');

const taken = await listen(createServer());
after(() => taken[Symbol.asyncDispose]());
const takenAddress = `127.0.0.1:${taken.port}`;

const commands = commandProcess(folder);

/** @param line one text, or its arguments if one contains a space */
function run(line: string | string[], env: Record<string, string> = {}): Promise<Finished> {
  return commands.run({ args: typeof line === 'string' ? line.split(' ') : line, env });
}

/** The lines on stderr without commander's hints in parentheses. */
function linesOf({ stderr }: Finished): string[] {
  return stderr.split('\n').filter(line => line !== '' && !/^\(.*\)$/.test(line));
}

type Misuse = [exitCode: 1 | 2, args: string | string[], says: RegExp, env?: Record<string, string>];

/** Values that an option or an argument does not accept. */
function wrong(command: string, values: readonly string[], says: RegExp): Misuse[] {
  return values.map(value => [2, [...command.split(' '), value], says]);
}

const ANY_PORTS = '--listen 127.0.0.1:0 --ops 127.0.0.1:0';
/** Every command that reads or writes a store, with its arguments. The first two create a store. */
const STORE_COMMANDS = [
  `serve ${ANY_PORTS}`,
  'token create label',
  'token list',
  'token revoke first',
  'list',
  'show 1',
  'export',
  'stats',
];
const FOLDER_ADVICE =
  /cannot be opened .*; check that the folder exists, and that this user may write to it and to the file$/;
const ADDRESSES = ['65536', ':', '127.0.0.1:65536', '::1:8080', '8080:', ''];
const NEWER = /newer\.db was written by a newer plant-store .*; use that one$/;
const MISSING = /there is no plant store at .*missing\.db; name an existing one with --database; /;
const NO_RANGES = ['5', '5..1', '1..9223372036854775808', '1..1e3', 'a..b', ''];
const SERVE = 'serve --database sqlite:unused.db';
/** Ids as a person may type them, and why each is rejected. */
const TYPED_IDS: [id: string, says: RegExp][] = [
  ['0012', /0012.* has a leading zero; remove it, or give the plant another id if the zero matters\.$/],
  ['-0012', /-0012.* has a leading zero; /],
  ['-0', /-0.* has a sign, but 0 has none; write 0\.$/],
  ['+12', /\+12.* has another sign than -; remove it, or write -\.$/],
  ['12 000', /12 000.* has a separator; write the digits without it\.$/],
  ['12.000', /12\.000.* may have separators; /],
  ['1e3', /1e3.* has an exponent; .*write all digits\.$/],
  ['1.0', /1\.0.* has a fraction; write an integer\.$/],
  ['fern', /fern.* is not a number; write an integer in digits\.$/],
  ['9223372036854775808', /9223372036854775808.* is above 9223372036854775807, the largest id\.$/],
  ['-9223372036854775809', /-9223372036854775809.* is below -9223372036854775808, the smallest id\.$/],
];
/** Those that a file cannot have: it may have blanks around its ids. */
const TYPED_ARGUMENTS: typeof TYPED_IDS = [
  ...TYPED_IDS,
  ['', /is empty; write an integer in digits\.$/],
  [' 12', / 12.* has a blank before or after it; remove the blank\.$/],
];

const SEAL = `plant-store seal 1 2026-01-01T00:00:00.000Z 3 plants 5 revisions sha256:${'0'.repeat(64)}`;
writeFileSync(join(folder, 'broken.seal'), `${SEAL}\n12 plants\n`);

const MISUSES: Misuse[] = [
  [2, 'plant', /unknown command 'plant'/],
  [2, 'token create label --colour', /unknown option '--colour'/],
  [2, '--listen :8080', /: --listen needs a command before it: npx plant-store serve --listen …$/],
  [2, '--public-url=http://a', /: --public-url needs a command before it: npx plant-store serve /],
  [2, '--colour', /unknown option '--colour'/],

  ...wrong('serve --listen', ADDRESSES, /'--listen <host:port>' argument .* HOST:PORT or PORT, for/),
  ...wrong(
    'serve --ops-host',
    ['a.internal:81', 'http://a.internal', 'a,,b', '*', ''],
    /is invalid.*a host name without a/,
  ),
  [2, 'serve', /value 'here' from env 'PLANT_STORE_LISTEN' is invalid/, { PLANT_STORE_LISTEN: 'here' }],
  [2, 'serve --repeated-id keep', /Allowed choices are revise, reject/],
  ...wrong(
    'serve --rate-limit',
    ['', '100', '0/s', '100/h', '1.5/s', '1000001/s'],
    /Write it as COUNT\/s or COUNT\/min with a count from 1 to 1000000, for example 100\/s\.$/,
  ),
  ...wrong(
    'serve --cors-origin',
    ['pages.example', 'null', 'https://a.example,*', 'https://*.example'],
    /Write each as SCHEME:\/\/HOST/,
  ),
  ...wrong('serve --cors-origin', ['https://A.example:443/'], /Write https:\/\/a\.example, as browsers do/),
  ...wrong(
    'serve --public-url',
    ['plants.example', 'ftp://a', '/garden', 'http://a/?b', 'http://a/#b', 'http://b@a', ''],
    /Write an http or https address without/,
  ),
  ...wrong('serve --body-limit', ['0', '-1', '1e6', '8388609', ''], /is invalid.*from 1 to 8388608/),
  [1, `${SERVE} --listen ${takenAddress} --ops 127.0.0.1:0`, /another program uses .* with --listen; a/],
  [1, `${SERVE} --listen 127.0.0.1:0 --ops ${takenAddress}`, /another program uses .* with --ops; a second/],
  // RFC 5737 section 3: an address for documentation, which no machine has.
  [
    1,
    `${SERVE} --listen 203.0.113.1:0 --ops 127.0.0.1:0`,
    /EADDRNOTAVAIL: .*; choose another address with --listen$/,
  ],

  ...wrong(
    'token create',
    ['', 'x'.repeat(101), 'a\tb', ' a', 'a ', 'Z\ufffdrich'],
    /Give 1 to 100 characters/,
  ),
  ...wrong(
    'token create label --expires',
    ['', '90', '0d', '-1d', '1.5d', '1000000d'],
    /a whole number of days/,
  ),
  [1, `token create first --database ${database}`, /the label "first" already exists; choose another label$/],
  [1, `token revoke nobody --database ${database}`, /no token with the label "nobody" in /],

  ...TYPED_ARGUMENTS.flatMap(([id, says]): Misuse[] => [
    [2, ['show', '--', id], says],
    [2, ['list', '--from', id], says],
    [2, ['add', '--token', 't', '--url', 'http://127.0.0.1:1', '--', id, 'Fern'], says],
  ]),
  [1, `show 9007199254740993 --database ${database}`, /there is no plant with the id 9007199254740993 in /],
  ...wrong('list --limit', ['0', '-1', ''], /Give a number from 1 to 9007199254740991/),
  ...wrong(
    'export --at',
    [
      ...['2026-05-01', '2026-05-01T00:00', '2026-02-30T00:00Z', '1777593600000', 'yesterday', ''],
      // Temporal accepts these, but SQLite does not.
      ...['2026-05-01T00:00+0100', '2026-05-01T00:00+01', '2026-05-01t00:00Z', '2026-05-01T00:00z'],
      ...['2026-05-01T00:00:00,5Z', '2026-05-01T00:00:00.1234Z', '2026-05-01T00:00:60Z', '20260501T0000Z'],
      ...['2026-05-01 00:00Z', '2026-05-01T00Z', '2026-05-01T00:00+15:00', '2026-05-01T00:00Z[UTC]'],
    ],
    /'--at <time>' argument .* is invalid\. Write date, time of day and zone, such as /,
  ),
  ...wrong('export --at', ['2126-05-01T00:00Z'], /This time is in the future\.$/),
  [2, 'export --changed', /--changed needs a time: give --at$/],
  [
    2,
    'export --at 2026-05-01T00:00Z --changed --revisions',
    /'--changed' cannot be used with .*'--revisions'/,
  ],
  ...TYPED_IDS.flatMap(([id, says], index): Misuse[] => {
    const files = [`3\n\n${id}`, `3\r\n# 5\r\n ${id} # why`];
    return files.map((ids, file): Misuse => {
      const name = `ids-${index}-${file}`;
      writeFileSync(join(folder, name), ids);
      return [2, `copy --from a --to b --except ${name}`, new RegExp(` Line 3: id "${says.source}`)];
    });
  }),
  [2, `copy --from a --to b --except ${noIds}`, / The file has no id\.$/],
  [2, 'copy --from a --to b --except none', /--except, none, cannot be read \(ENOENT\)/],
  [2, `copy --from a --to b --except ${emptyFile}`, /--except, .*, is empty; put the ids into it$/],

  ...wrong(
    'verify --against',
    [SEAL.slice(0, -1), SEAL.replace('seal 1', 'seal 9')],
    /seal must be a line as/,
  ),
  [2, 'verify --against broken.seal', /--against: line 2 of the file of the seal is malformed/],
  [
    2,
    'verify --against none.seal',
    /--against: there is no file none.seal; give the path of a seal, or its line/,
  ],
  [2, 'verify --against .', /--against: the file \. cannot be read \(EISDIR\); give the path of a seal, or/],

  [2, 'import --token t --token-file f a.csv', /--token and --token-file are both given/],
  [2, 'import --token-file none a.csv', /token file none cannot be read \(ENOENT\)/],
  [
    2,
    'import a.csv',
    /the text of PLANT_STORE_TOKEN is not a token: a character is not allowed$/,
    { PLANT_STORE_TOKEN: 'plant_…' },
  ],
  [2, 'import --token t --url localhost:8080 a.csv', /--url must be an http or https/],
  [2, 'import --token t --url http://a/?b a.csv', /--url .* without/],
  [2, 'import --token t - -', /give - only once/],
  [2, 'import --token t --rejects r a b', /give one FILE, or omit --rejects/],
  [2, 'import --token t --rejects - a.csv', /--rejects needs the name of a file/],
  ...wrong('import --token t a.csv --columns', ['id', 'label=b'], /Write MEMBER=COLUMN for id, name or tag/),
  ...wrong('import --token t a.csv --delimiter', [',,', '"'], /Give one character, or the word tab/),
  ...['1025', '0'].map(
    (count): Misuse => [2, `import --token t --in-flight ${count} a.csv`, /a number from 1 to 1024/],
  ),

  [2, 'check plants.example --token a', /BASE_URL must be an http or https address/],
  [2, 'check http://127.0.0.1:1 --yes', /a token is required: give --token-file/],
  [2, ['check', 'http://127.0.0.1:1', '--yes', '--token', 'a b'], /the text of --token is not a token/],
  ...wrong('check http://127.0.0.1:1 --ids', NO_RANGES, /Write it as FROM\.\.TO with two 64-bit integers/),

  ...wrong(
    'export --database',
    ['plants.db', 'sqlite:', 'sqlite::memory:', 'mysql://localhost/plants'],
    /invalid database URL; write sqlite:PATH, for example sqlite:/,
  ),
  ...wrong(
    'export --database',
    ['sqlite://rel.db', 'sqlite:///tmp/plants.db', 'sqlite:plants.db?mode=ro', 'sqlite:plants.db '],
    /after sqlite: write only a path: no \/\/, no \? and no blanks around it$/,
  ),
  ...['DATABASE', 'LISTEN', 'PUBLIC_URL', 'CORS_ORIGIN'].map(
    (name): Misuse => [
      2,
      'serve',
      RegExp(`PLANT_STORE_${name} has a control character, such as the carriage return .*; remove it$`),
      { [`PLANT_STORE_${name}`]: 'sqlite:plants.db\r' },
    ],
  ),
  ...wrong('copy --from sqlite:a.db --to', ['sqlite:b.db\n'], /--to: .* has a control character, such as/),
  [1, `serve ${ANY_PORTS} --database sqlite:.`, /\. is a folder; name a file, such as plant-store\.db$/],
  [1, 'list --database sqlite:.', /\. is a folder; name a file, such as plant-store\.db$/],
  ...STORE_COMMANDS.map((command): Misuse => [1, `${command} --database sqlite:${newer}`, NEWER]),
  ...STORE_COMMANDS.slice(2).map(
    (command): Misuse => [1, `${command} --database sqlite:missing.db`, MISSING],
  ),
  ...[STORE_COMMANDS[0]!, 'token create label', 'export'].flatMap((command): Misuse[] => [
    [
      1,
      `${command} --database sqlite:${stranger}`,
      /stranger\.db is an SQLite database but not a plant store; /,
    ],
    [1, `${command} --database sqlite:${textFile}`, /text\.db cannot be opened/],
  ]),
  // Permissions do not bind root; these paths do.
  [1, `serve ${ANY_PORTS} --database sqlite:${textFile}/plants.db`, FOLDER_ADVICE],
  [1, `serve ${ANY_PORTS} --database sqlite:typo/plants.db`, /the folder .*typo does not exist; create it/],
  [1, 'token create label --database sqlite:/proc/plants.db', FOLDER_ADVICE],
];

test('each error is one line that begins with the name of the program, and creates no store', async () => {
  const stores = () => readdirSync(folder).filter(name => !name.includes('.db-'));
  const before = stores();
  for (const [exitCode, args, says, env] of MISUSES) {
    const finished = await run(args, env);
    const shown = `${args} ${JSON.stringify(env ?? {})}: ${finished.stderr}`;
    assert.equal(linesOf(finished).length, 1, shown);
    assert.match(linesOf(finished)[0]!, /^plant-store: /, shown);
    assert.match(linesOf(finished)[0]!, says, shown);
    assert.deepEqual([finished.exitCode, finished.stdout], [exitCode, ''], shown);
  }
  assert.deepEqual(stores(), before);

  // Another program is writing to the store. No token is shown.
  using writer = new DatabaseSync(join(folder, 'plants.db'));
  writer.exec('BEGIN IMMEDIATE');
  const finished = await run(['token', 'create', 'in the way', '--database', database]);
  assert.deepEqual([finished.exitCode, finished.stdout, linesOf(finished).length], [1, '', 1]);
});

test('a result that cannot be written is one line', async () => {
  // The limit of the file size binds every user, also root, on every POSIX system.
  const prefix = ['sh', '-c', 'ulimit -S -f 0 && exec "$0" "$@" >cannot-grow.txt'];
  const { exitCode, stderr } = await runProgram(['openapi'], { prefix, cwd: folder });
  assert.match(`${exitCode} ${stderr}`, /^1 plant-store: .*cannot be written.*\n$/);
});

const COMMANDS =
  'serve console health token add import list show export stats copy verify backup check openapi';

test('--help explains each command, and an incomplete command prints its help', async () => {
  for (const [command, ...words] of [
    ['', ...COMMANDS.split(' '), '--version'],
    ['serve', 'PLANT_STORE_LISTEN', 'sqlite:./data/plant-store.db', '127.0.0.1:8080', 'npm start -- --'],
    ['token', 'create', 'list', 'revoke'],
  ] as const) {
    const { exitCode, stdout, stderr } = await run(`${command} --help`.trim());
    assert.deepEqual([exitCode, stderr], [0, '']);
    for (const each of words) assert.ok(stdout.includes(each), `${command}: ${each} is not in:\n${stdout}`);
  }
  for (const args of [[], ['token']]) {
    assertFailed(await run(args), /^Usage: plant-store .*\nCommands:\n/s, 2);
  }
  for (const [command, printed] of [
    ['version', `${packageJson.version}\n`],
    ['--version', `${packageJson.version}\n`],
    ['openapi', openApiJson()],
  ] as const)
    assert.deepEqual(await run(command), { exitCode: 0, stdout: printed, stderr: '' });
});

test('a set variable that is no setting is named, unless Kubernetes sets it', async () => {
  const env = {
    PLANT_STORE_DATABSE: 'sqlite:typo.db',
    PLANT_STORE_OPS: '8081',
    PLANT_STORE_PORT: 'tcp://10.0.0.1:8080',
    PLANT_STORE_PORT_8080_TCP_ADDR: '10.0.0.1',
    PLANT_STORE_METRICS_SERVICE_HOST: '10.0.0.1',
  };
  const { stderr } = await run(['stats', '--database', database], env);
  assert.match(stderr, /^WARNING: PLANT_STORE_DATABSE is no setting, and is ignored; .*\n$/);
});

test('settings of serve come from the environment or a flag, and a port alone is on loopback', async () => {
  const env: Record<string, string> = {
    PLANT_STORE_OPS: takenAddress,
    PLANT_STORE_OPS_HOST: 'other.internal, plants.internal',
    PLANT_STORE_REPEATED_ID: 'reject',
    PLANT_STORE_BODY_LIMIT: '10',
    PLANT_STORE_LOG_REQUESTS: 'on',
    PLANT_STORE_PUBLIC_URL: 'https://Plants.example/garden/',
  };
  const own = `sqlite:${join(folder, 'settings.db')}`;
  // An empty variable is the same as none.
  const others = ['CONNECTIONS', 'DOCS', 'RATE_LIMIT', 'CORS_ORIGIN', 'DATABASE_PASSWORD_FILE'];
  for (const name of others) env[`PLANT_STORE_${name}`] = '';
  const [port, opsPort] = [await freePort(), await freePort()];
  const flags = ['--body-limit', '40', '--listen', `:${port}`, '--ops', String(opsPort)];
  await using serve = await startServe(own, flags, { env });
  const { url, token, stop } = serve;
  assert.equal(url, `http://127.0.0.1:${port}`);
  const parts = { method: 'GET', target: '/livez', headers: { Host: 'plants.internal' }, body: '' };
  assert.equal((await ask(opsPort, token, parts)).status, 200);
  const description = await (await fetch(`${url}/openapi.json`)).text();
  assert.equal(description, openApiJson('https://plants.example/garden'));
  const client = new LoggingClient(url, token, []);
  assert.equal((await client.send({ id: 1n, name: 'fits the flag' })).response?.status, 200);
  assert.equal((await client.send({ id: 1n, name: 'rejected' })).response?.status, 400);
  assert.equal((await client.send({ id: 2n, name: 'is longer than forty bytes' })).response?.status, 413);
  await client.close();
  const { stdout } = await stop('SIGTERM');
  assert.equal(
    (await run(['token', 'list'], { PLANT_STORE_DATABASE: own })).stdout.match(/^first /m)?.length,
    1,
  );
  assert.equal(stdout.match(/"msg":"request completed"/g)?.length, 4);
  assert.match(stdout, /"address":"127\.0\.0\.1".*"ops":{"address":"127\.0\.0\.1"/);
});
