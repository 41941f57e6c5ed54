import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text as readText } from 'node:stream/consumers';
import { after, suite, test } from 'node:test';
import { openServedStore } from '../src/store/open-store.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { type Finished, PROGRAM, runInTime, runProgram, startProgram } from './harness/program.ts';
import { readGreeting } from './harness/serve-greeting.ts';

const folder = mkdtempSync(join(tmpdir(), 'plant-store-cli-'));
after(() => rmSync(folder, { recursive: true }));

/** A store with the plants 1 and -1 and the token "first". */
const database = `sqlite:${join(folder, 'plants.db')}`;
const store = await openServedStore({ database: database, repeatedIdRule: 'revise', connections: 1 });
await store.engine.createToken({
  hash: '0'.repeat(64),
  label: 'first',
  createdAt: Date.now(),
  expiresAt: null,
});
const plants = [1n, -1n].map(id => ({ plant: { id, name: `plant ${id}` }, recordedBy: 1 }));
await store.engine.commit(plants);
await store.close();

const newer = join(folder, 'newer.db');
const stranger = join(folder, 'stranger.db');
const textFile = join(folder, 'text.db');
const missing = `sqlite:${join(folder, 'missing.db')}`;
const belowFile = `sqlite:${join(textFile, 'plants.db')}`;
await (
  await openServedStore({ database: `sqlite:${newer}`, repeatedIdRule: 'revise', connections: 1 })
).close();
for (const [path, statement] of [
  [newer, 'PRAGMA user_version = 99'],
  [stranger, 'CREATE TABLE account (id)'],
] as const) {
  const client = new DatabaseSync(path);
  client.exec(statement);
  client.close();
}
writeFileSync(textFile, 'id,name,tag\n'.repeat(100));

const taken = createServer().listen(0, '127.0.0.1');
await once(taken, 'listening');
after(() => taken.close());
const takenAddress = `127.0.0.1:${(taken.address() as { port: number }).port}`;

/** What a person reads on stderr, without the hints that commander adds in parentheses. */
function linesOf({ stderr }: Finished): string[] {
  return stderr.split('\n').filter(line => line !== '' && !/^\(.*\)$/.test(line));
}

interface Misuse {
  args: string[];
  exitCode: 1 | 2;
  /** In the one line on stderr. */
  says: RegExp;
  env?: Record<string, string>;
}

function misused(says: RegExp, ...args: string[]): Misuse {
  return { args, exitCode: 2, says };
}

function failed(says: RegExp, ...args: string[]): Misuse {
  return { args, exitCode: 1, says };
}

const FOLDER_ADVICE = /cannot be opened .*; is the folder there and writable\?$/;
const ANY_PORTS = ['--listen', '127.0.0.1:0', '--ops', '127.0.0.1:0'];

/** Every command that reads or writes a store, with what else it needs. */
const STORE_COMMANDS = [
  ['serve', ...ANY_PORTS],
  ['token', 'create', 'label'],
  ['token', 'list'],
  ['token', 'revoke', 'first'],
  ['export'],
  ['show', '1'],
];
const READING_COMMANDS = STORE_COMMANDS.slice(2);

const MISUSES: Misuse[] = [
  misused(/unknown command 'plant'/, 'plant'),
  misused(/unknown option '--colour'/, '--colour'),
  misused(/unknown command 'make'/, 'token', 'make'),
  ...[...STORE_COMMANDS, ['openapi']].flatMap(command => [
    misused(/unknown option '--colour'/, ...command, '--colour'),
    misused(/too many arguments/, ...command, 'and another'),
  ]),
  misused(/'--database <url>' argument missing/, 'serve', '--database'),

  ...['8080', ':8080', '127.0.0.1:65536', '::1:8080', ''].map(address =>
    misused(
      /'--listen <host:port>' argument .* is invalid.*HOST:PORT, for example/,
      'serve',
      `--listen=${address}`,
    ),
  ),
  misused(/'--ops <host:port>' argument 'here' is invalid.*HOST:PORT/, 'serve', '--ops', 'here'),
  misused(/Allowed choices are revise, reject/, 'serve', '--repeated-id', 'keep'),
  misused(/Allowed choices are on, off/, 'serve', '--log-requests', 'often'),
  misused(/'--log-requests <on\|off>' argument missing/, 'serve', '--log-requests'),
  {
    ...misused(/value 'true' from env 'PLANT_STORE_LOG_REQUESTS' is invalid.*on, off/, 'serve'),
    env: { PLANT_STORE_LOG_REQUESTS: 'true' },
  },
  ...['0', '-1', '1e6', '8388609', ''].map(limit =>
    misused(
      /'--body-limit <bytes>' argument .* is invalid.*from 1 to 8388608/,
      'serve',
      `--body-limit=${limit}`,
    ),
  ),
  {
    ...misused(/value 'here' from env 'PLANT_STORE_LISTEN' is invalid.*HOST:PORT/, 'serve'),
    env: { PLANT_STORE_LISTEN: 'here' },
  },
  {
    ...misused(/value 'keep' from env 'PLANT_STORE_REPEATED_ID' is invalid/, 'serve'),
    env: { PLANT_STORE_REPEATED_ID: 'keep' },
  },
  failed(
    /^plant-store: .* is taken by another program; stop it, or choose another address with --listen$/,
    'serve',
    '--database',
    `sqlite:${join(folder, 'unused.db')}`,
    '--listen',
    takenAddress,
    '--ops',
    '127.0.0.1:0',
  ),
  failed(
    / is taken by another program; .* with --ops$/,
    'serve',
    '--database',
    `sqlite:${join(folder, 'unused too.db')}`,
    '--listen',
    '127.0.0.1:0',
    '--ops',
    takenAddress,
  ),
  // RFC 5737 section 3: an address for documentation, which no machine has.
  failed(
    /203\.0\.113\.1 is not an address of this machine; choose another with --listen$/,
    'serve',
    '--database',
    `sqlite:${join(folder, 'unused as well.db')}`,
    '--listen',
    '203.0.113.1:0',
    '--ops',
    '127.0.0.1:0',
  ),

  misused(/missing required argument 'label'/, 'token', 'create'),
  ...['', 'x'.repeat(101), 'a\tb'].map(label =>
    misused(/Give 1 to 100 characters/, 'token', 'create', label),
  ),
  ...['', '90', '0d', '-1d', '1.5d', '1000000d'].map(duration =>
    misused(
      /a whole number of days, hours or minutes, such as 90d/,
      'token',
      'create',
      'label',
      `--expires=${duration}`,
    ),
  ),
  failed(
    /there is a token with the label "first" already; choose another label$/,
    'token',
    'create',
    'first',
    '--database',
    database,
  ),
  misused(/missing required argument 'label'/, 'token', 'revoke'),
  failed(
    /there is no token with the label "nobody" in sqlite:[^ ]+; see `npx plant-store token list`$/,
    'token',
    'revoke',
    'nobody',
    '--database',
    database,
  ),

  misused(/missing required argument 'id'/, 'show'),
  ...['Ficus', '', '1.5', '9223372036854775808', '-9223372036854775809'].map(id =>
    misused(
      /It must be an integer from -9223372036854775808 to 9223372036854775807/,
      'show',
      '--database',
      database,
      '--',
      id,
    ),
  ),
  failed(
    /there is no plant with the id 9007199254740993 in /,
    'show',
    '9007199254740993',
    '--database',
    database,
  ),
  misused(/Allowed choices are csv, jsonl/, 'export', '--format', 'xml'),

  ...[['serve'], ['token', 'create', 'label'], ['export']].map(command =>
    misused(/names no store; write sqlite:PATH, for example sqlite:/, ...command, '--database', 'plants.db'),
  ),
  ...STORE_COMMANDS.map(command =>
    failed(
      /newer\.db was written by a newer plant-store .*; use that one$/,
      ...command,
      '--database',
      `sqlite:${newer}`,
    ),
  ),
  ...[['serve', ...ANY_PORTS], ['token', 'create', 'label'], ['export']].flatMap(command => [
    failed(
      /stranger\.db is an SQLite database but not a plant store; name another file/,
      ...command,
      '--database',
      `sqlite:${stranger}`,
    ),
    failed(/text\.db cannot be opened/, ...command, '--database', `sqlite:${textFile}`),
  ]),
  ...READING_COMMANDS.map(command =>
    failed(
      /there is no plant store at .*missing\.db; .* or name another with --database$/,
      ...command,
      '--database',
      missing,
    ),
  ),
  // These bind root as well, which permissions do not. Node makes no folder in the second place, and never gives up.
  failed(FOLDER_ADVICE, 'serve', ...ANY_PORTS, '--database', belowFile),
  failed(FOLDER_ADVICE, 'token', 'create', 'label', '--database', belowFile),
  failed(FOLDER_ADVICE, 'token', 'create', 'label', '--database', 'sqlite:/proc/plant-store/plants.db'),
];

suite('what cannot be done is said in one line', { concurrency: 3 }, () => {
  for (const { args, exitCode, says, env } of MISUSES) {
    const shown = [
      ...Object.entries(env ?? {}).map(pair => pair.join('=')),
      ...args.map(arg => JSON.stringify(arg)),
    ];
    test(`${exitCode}: ${shown.join(' ').replaceAll(folder, '…')}`, async () => {
      const finished = await runInTime(args, { env: env ?? {}, cwd: folder });
      assert.deepEqual(linesOf(finished).length, 1, finished.stderr);
      assert.match(linesOf(finished)[0]!, says);
      assert.equal(finished.exitCode, exitCode);
      assert.equal(finished.stdout, '');
    });
  }

  for (const args of [[], ['token']]) {
    test(`2: nothing to do is answered with the usage: ${args.join('')}`, async () => {
      const { exitCode, stdout, stderr } = await runInTime(args, { cwd: folder });
      assert.match(stderr, /^Usage: plant-store .*\nCommands:\n/s);
      assert.deepEqual([exitCode, stdout], [2, '']);
    });
  }

  test('1: a store that another program is writing to', async () => {
    const writer = new DatabaseSync(join(folder, 'plants.db'));
    writer.exec('BEGIN IMMEDIATE');
    const finished = await runInTime(['token', 'create', 'in the way', '--database', database], {
      cwd: folder,
    });
    writer.close();
    assert.equal(finished.exitCode, 1);
    assert.equal(finished.stdout, '', 'no token is shown that is not stored');
    assert.equal(linesOf(finished).length, 1, finished.stderr);
  });

  test('1: a result that cannot be written', async () => {
    // A file that may not grow, which binds every user on every POSIX system.
    const script = 'ulimit -S -f 0 && exec "$0" "$@" >cannot-grow.txt';
    const child = spawn('sh', ['-c', script, process.execPath, PROGRAM, 'openapi'], {
      cwd: folder,
      stdio: 'pipe',
    });
    const [stderr, [exitCode]] = await Promise.all([readText(child.stderr), once(child, 'close')]);
    assert.equal(exitCode, 1);
    assert.match(stderr, /^plant-store: .*cannot be written.*\n$/);
  });
});

suite('--help', { concurrency: 3 }, () => {
  const OPTIONS: [string[], string[]][] = [
    [[], ['serve', 'token', 'export', 'show', 'openapi', 'import', 'check']],
    [
      ['serve'],
      [
        '--database',
        '--listen',
        '--ops',
        '--repeated-id',
        '--log-requests',
        '--body-limit',
        'PLANT_STORE_DATABASE',
        'PLANT_STORE_LISTEN',
        '127.0.0.1:8080',
        '127.0.0.1:8081',
        'sqlite:./data/plant-store.db',
      ],
    ],
    [['token'], ['create', 'list', 'revoke']],
    [
      ['token', 'create'],
      ['<label>', '--expires', '90d', '--database'],
    ],
    [['token', 'list'], ['--database']],
    [
      ['token', 'revoke'],
      ['<label>', '--database'],
    ],
    [['export'], ['--database', '--format', '"csv", "jsonl"', '--revisions']],
    [['show'], ['<id>', '--database']],
    [
      ['check'],
      [
        '<BASE_URL>',
        '--token-file',
        '--format',
        '"text"',
        '"json"',
        '"junit"',
        '--ids',
        '--ours',
        '--dry-run',
      ],
    ],
    [['openapi'], ['OpenAPI']],
  ];
  for (const [command, mentioned] of OPTIONS) {
    test(`of ${command.join(' ') || 'the program'}`, async () => {
      const { exitCode, stdout, stderr } = await runInTime([...command, '--help'], { cwd: folder });
      assert.deepEqual([exitCode, stderr], [0, '']);
      for (const each of mentioned) assert.ok(stdout.includes(each), `${each} is not in:\n${stdout}`);
    });
  }
});

test('a flag beats the environment, and the environment beats the default', async () => {
  const own = mkdtempSync(join(folder, 'default-'));
  const run = (args: string[], env: Record<string, string> = {}): Promise<Finished> =>
    runProgram(args, { cwd: own, env });
  await run(['token', 'create', 'by default']);
  await run(['token', 'create', 'by environment'], { PLANT_STORE_DATABASE: 'sqlite:environment.db' });
  await run(['token', 'create', 'by flag', '--database', 'sqlite:flag.db'], {
    PLANT_STORE_DATABASE: missing,
  });
  for (const [path, label] of [
    ['data/plant-store.db', 'by default'],
    ['environment.db', 'by environment'],
    ['flag.db', 'by flag'],
  ]) {
    const { stdout } = await run(['token', 'list', '--database', `sqlite:${path}`]);
    assert.match(stdout, new RegExp(`^${label} `, 'm'));
  }
});

test('every setting of serve can come from the environment, and a flag beats it', async () => {
  const env = {
    PLANT_STORE_DATABASE: `sqlite:${join(folder, 'environment', 'plants.db')}`,
    PLANT_STORE_LISTEN: '127.0.0.1:0',
    PLANT_STORE_OPS: takenAddress,
    PLANT_STORE_REPEATED_ID: 'reject',
    PLANT_STORE_BODY_LIMIT: '10',
    PLANT_STORE_LOG_REQUESTS: 'on',
  };
  const child = startProgram(['serve', '--ops', '127.0.0.1:0', '--body-limit', '40'], { env });
  after(() => child.kill('SIGKILL'));
  const log = readText(child.stdout!);
  const { url, token } = await readGreeting(child);
  const client = new LoggingClient(url, token, []);
  assert.equal((await client.send({ id: 1n, name: 'fits the flag' })).answer?.status, 200);
  assert.equal((await client.send({ id: 1n, name: 'is refused' })).answer?.status, 400);
  assert.equal((await client.send({ id: 2n, name: 'is longer than forty bytes' })).answer?.status, 413);
  await client.close();
  child.kill('SIGTERM');
  await once(child, 'close');
  assert.equal((await log).match(/"msg":"answered"/g)?.length, 3);
});
