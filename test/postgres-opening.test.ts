import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { openServedStore } from '../src/store/open-store.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { PostgresServer } from './harness/postgres-server.ts';
import { type Finished, runInTime, startServe } from './harness/program.ts';
import { until } from './harness/until.ts';
import { startTestService } from './running-service.ts';
import { SilentHost } from './silent-host.ts';

/** Of every role here; with all that means something in a URL, in SQL and in a password file. */
const PASSWORD = `Qz7@wX/?#:%&'\\Zk`;
const WRONG_PASSWORD = `Vb3@${PASSWORD}`;
/** Four of the letters of either, which nothing else has. */
const TELLTALE = /Qz7|wX|Zk|Vb3/;

const folder = mkdtempSync(join(tmpdir(), 'plant-store-opening-'));
after(() => rmSync(folder, { recursive: true }));
const server = await PostgresServer.start();
after(() => server[Symbol.asyncDispose]());

const silent = await SilentHost.listen();
after(() => silent[Symbol.dispose]());
/** Of nobody: port 1 takes root to listen at, and is for what nobody runs. */
const REFUSING = '127.0.0.1:1';

const sqlPassword = `'${PASSWORD.replaceAll("'", "''")}'`;
const ROLES = {
  keeper: '',
  visitor: '',
  half: '',
  stranger: '',
  crowded: 'CONNECTION LIMIT 0',
  uninvited: '',
};
for (const [role, attribute] of Object.entries(ROLES)) {
  await server.query(`CREATE ROLE ${role} LOGIN PASSWORD ${sqlPassword} ${attribute}`);
}
for (const sql of [
  'CREATE DATABASE plants OWNER keeper',
  'CREATE DATABASE newer OWNER keeper',
  'CREATE DATABASE empty OWNER keeper',
  'CREATE DATABASE together OWNER keeper',
  `CREATE DATABASE latin OWNER keeper ENCODING 'LATIN1' TEMPLATE template0`,
  'CREATE DATABASE frozen OWNER keeper',
  'ALTER DATABASE frozen SET default_transaction_read_only = on',
  'CREATE DATABASE closed OWNER keeper',
  'REVOKE CONNECT ON DATABASE closed FROM PUBLIC',
]) {
  await server.query(sql);
}
const url = (database: string, role = 'keeper', parameters = '', password = PASSWORD): string =>
  server.url(database, parameters, role, password);
for (const database of ['plants', 'newer']) {
  const store = await openServedStore({ database: url(database), repeatedIdRule: 'revise', connections: 1 });
  await store.close();
}
await server.query('INSERT INTO schema_step VALUES (99)', 'newer');
await server.query('GRANT SELECT ON schema_step, token TO half', 'plants');

const SERVE = ['serve', '--listen', '127.0.0.1:0', '--ops', '127.0.0.1:0'];
const COMMANDS = { serve: SERVE, 'token create': ['token', 'create', 'label'], export: ['export'] };
type CommandName = keyof typeof COMMANDS;

interface Fault {
  name: string;
  database: string;
  /** In the one line on stderr, behind the name of the program; where it differs, for each command. */
  says: RegExp | Record<CommandName, RegExp>;
  exitCode?: 1 | 2;
  args?: string[];
  env?: Record<string, string>;
  /** With one command in turn, where the three come upon it in the same lines of code. */
  once?: true;
}

const readableByAll = passwordFile('readable.pgpass', 'whatever:1:x:x:x\n', 0o644);
const CANNOT_BE_OPENED = `^the store at postgres://keeper@127\\.0\\.0\\.1:${server.port}/\\w+ cannot be opened: `;
/** The line, with the address of the store before it. */
function opening(reason: RegExp): RegExp {
  return new RegExp(CANNOT_BE_OPENED + reason.source);
}

const NO_RIGHT_TO_MAKE =
  /there is no plant store yet, and this user may not make one \(permission denied for schema public\); run `npx plant-store token create LABEL` once as the role that owns the database, see docs\/postgresql-roles\.sql$/;
const SERVICE_RIGHTS =
  /the user lacks a right \(SELECT on plant_revision, INSERT on plant_revision, UPDATE \(last_used_day\) on token\); docs\/postgresql-grants\.sql has the statements that grant it$/;
const NO_PASSWORD =
  /the server asks for a password; give one with PGPASSWORD, PGPASSFILE or PLANT_STORE_DATABASE_PASSWORD_FILE$/;
const UNREADABLE =
  /^the file that --database-password-file or PLANT_STORE_DATABASE_PASSWORD_FILE names cannot be read \(E\w+\); give the path of a file$/;

const FAULTS: Fault[] = [
  {
    name: 'nothing answers',
    database: url('plants').replace(/127.*\//, `${REFUSING}/`),
    says: /^the store at postgres:\/\/keeper@127\.0\.0\.1:1\/plants cannot be opened: nothing answers there; is PostgreSQL running, and is the address right\?$/,
  },
  {
    name: 'something answers, and never a word',
    once: true,
    database: url('plants').replace(/127.*\//, `${silent.name}/`),
    says: /\/plants cannot be opened: timeout expired; is PostgreSQL running, and is the address right\?$/,
  },
  {
    name: 'an unknown host',
    once: true,
    database: url('plants').replace(/127.*\//, 'nowhere.invalid:5432/'),
    // A resolver that does not answer in time is as good as none.
    says: /@nowhere\.invalid:5432\/plants cannot be opened: (?:the name of the host is not known; check it|timeout expired; .*)$/,
  },
  {
    name: 'a wrong password',
    database: url('plants', 'keeper', '', WRONG_PASSWORD),
    says: opening(/the server refuses the password; check it, and the user$/),
  },
  {
    name: 'a wrong password from PGPASSWORD',
    once: true,
    database: withoutPassword(url('plants')),
    env: { PGPASSWORD: WRONG_PASSWORD },
    says: opening(/the server refuses the password; check it, and the user$/),
  },
  { name: 'no password', database: withoutPassword(url('plants')), says: opening(NO_PASSWORD) },
  {
    name: 'a password file that others may read',
    once: true,
    database: withoutPassword(url('plants')),
    env: { PGPASSFILE: readableByAll },
    says: opening(
      /the server asks for a password \(password file ".*readable\.pgpass" has group or world access; permissions should be u=rw \(0600\) or less\); give one with /,
    ),
  },
  {
    name: 'a role that is not there',
    once: true,
    database: url('plants', 'nobody'),
    says: /the server refuses the password; check it, and the user$/,
  },
  {
    name: 'no user',
    once: true,
    database: `postgres://127.0.0.1:${server.port}/plants?password=${encodeURIComponent(PASSWORD)}`,
    says: /^the postgres:\/\/ address of the store names no user; write postgres:\/\/USER@HOST:PORT\/DATABASE$/,
    exitCode: 2,
  },
  {
    name: 'a database that is not there',
    once: true,
    database: url('nowhere'),
    says: opening(/there is no such database; make it with CREATE DATABASE, or name another$/),
  },
  {
    name: 'no right to make the tables',
    database: url('empty', 'visitor'),
    says: {
      serve: NO_RIGHT_TO_MAKE,
      'token create': NO_RIGHT_TO_MAKE,
      export:
        /cannot be opened: there is no plant store in this database; `npx plant-store serve` makes one$/,
    },
  },
  {
    name: 'no right to plants',
    database: url('plants', 'half'),
    says: {
      serve: SERVICE_RIGHTS,
      'token create': SERVICE_RIGHTS,
      export: /the user lacks a right \(SELECT on plant_revision\); docs\/postgresql-grants\.sql has /,
    },
  },
  {
    name: 'no right to anything',
    database: url('plants', 'stranger'),
    says: /the user lacks a right \(permission denied for table schema_step\); docs\/postgresql-grants\.sql has /,
  },
  {
    name: 'no right to connect',
    once: true,
    database: url('closed', 'uninvited'),
    says: /the user lacks a right \(permission denied for database "closed"\); /,
  },
  {
    name: 'too many connections',
    once: true,
    database: url('plants', 'crowded'),
    says: /the server has no connection left \(too many connections for role "crowded"\); raise max_connections there, or lower --connections$/,
  },
  {
    name: 'a schema that is newer',
    database: url('newer'),
    says: opening(
      /it was written by a newer plant-store \(schema step 99, this program knows 1\); use that one$/,
    ),
  },
  {
    name: 'another encoding',
    once: true,
    database: url('latin'),
    says: opening(
      /the database has the encoding LATIN1, which does not hold every name; make one with CREATE DATABASE /,
    ),
  },
  {
    name: 'hosts that are only read from',
    database: url('frozen').replace('@', `@${REFUSING},`),
    says: new RegExp(
      `cannot be opened: 127\\.0\\.0\\.1:${server.port} is read-only \\(a standby, or default_transaction_read_only is on\\); name the host that takes writes$`,
    ),
  },
  {
    name: 'a setting that the server does not know',
    once: true,
    database: url('plants', 'keeper', '?options=-c%20nonsense%3D1'),
    says: opening(
      /the server refuses a setting \(unrecognized configuration parameter "nonsense"\); check the parameter options$/,
    ),
  },
  {
    name: 'an unknown parameter',
    once: true,
    database: url('plants', 'keeper', '?ssl=true'),
    says: /^the postgres:\/\/ address of the store has an unknown parameter, number 1; known are host, .*sslmode/,
    exitCode: 2,
  },
  {
    name: 'a password that is not encoded',
    once: true,
    database: `postgres://keeper:${PASSWORD}@127.0.0.1:${server.port}/plants`,
    says: /^the postgres:\/\/ address of the store is not postgres:\/\/USER@HOST:PORT\/DATABASE; write @, .* as %40, %2F, %3F and %25$/,
    exitCode: 2,
  },
  {
    name: 'a password file that is not there',
    once: true,
    database: withoutPassword(url('plants')),
    args: ['--database-password-file', join(folder, 'none')],
    says: UNREADABLE,
    exitCode: 2,
  },
  {
    name: 'a password file that cannot be read',
    once: true,
    database: withoutPassword(url('plants')),
    env: { PLANT_STORE_DATABASE_PASSWORD_FILE: folder },
    says: UNREADABLE,
    exitCode: 2,
  },
  {
    name: 'a password in the place of its file',
    once: true,
    database: withoutPassword(url('plants')),
    env: { PLANT_STORE_DATABASE_PASSWORD_FILE: PASSWORD },
    says: UNREADABLE,
    exitCode: 2,
  },
  {
    name: 'an empty password file',
    once: true,
    database: withoutPassword(url('plants')),
    args: ['--database-password-file', passwordFile('empty', '\n')],
    says: /^the file that --database-password-file or .* names is empty; put the password into it$/,
    exitCode: 2,
  },
  {
    name: 'a root certificate that is not there',
    once: true,
    database: url('plants', 'keeper', '?sslmode=verify-full&sslrootcert=/nowhere/ca.pem'),
    says: opening(
      /the file that sslrootcert names cannot be read \(ENOENT: .*'\/nowhere\/ca\.pem'\); check the address of the store$/,
    ),
  },
  {
    name: 'a server without TLS',
    once: true,
    database: url('plants', 'keeper', '?sslmode=require'),
    says: opening(/the server does not offer TLS; check sslmode, /),
  },
];

suite('what stands between a command and its store is said in one line', { concurrency: 3 }, () => {
  for (const [index, { name, database, says, exitCode = 1, args = [], env, once }] of FAULTS.entries()) {
    const commands = Object.entries(COMMANDS) as [CommandName, string[]][];
    for (const [command, words] of once ? [commands[index % commands.length]!] : commands) {
      test(`${command}: ${name}`, async () => {
        const finished = await runInTime([...words, '--database', database, ...args], { env: env ?? {} });
        assert.match(finished.stderr, /^plant-store: [^\n]+\n$/, 'one line');
        const line = finished.stderr.slice('plant-store: '.length).trimEnd();
        assert.match(line, says instanceof RegExp ? says : says[command]);
        assert.deepEqual([finished.exitCode, finished.stdout], [exitCode, '']);
        assertTellsNothing(finished);
      });
    }
  }

  test('an option that is misspelt', async () => {
    const { exitCode, stderr } = await runInTime([...SERVE, `--databse=${url('plants')}`]);
    assert.equal(exitCode, 2);
    assert.match(stderr, /unknown option '--databse=postgres:…\n/);
  });
});

suite('a password is taken', { concurrency: 3 }, () => {
  const bare = withoutPassword(url('plants'));
  const file = passwordFile('password', `${PASSWORD}\n`);
  const escaped = PASSWORD.replace(/[\\:]/g, '\\$&');
  const pgpass = passwordFile(
    'pgpass',
    `# others first\n127.0.0.1:${server.port}:plants:visitor:${WRONG_PASSWORD}\n*:*:plants:keeper:${escaped}\n`,
  );
  const wrongFile = passwordFile('wrong', WRONG_PASSWORD);
  const WAYS: Record<string, { database?: string; args?: string[]; env?: Record<string, string> }> = {
    'from the address': { database: url('plants') },
    'from a parameter of the address': { database: `${bare}?password=${encodeURIComponent(PASSWORD)}` },
    'from PLANT_STORE_DATABASE': { args: [], env: { PLANT_STORE_DATABASE: url('plants') } },
    'from PGPASSWORD': { database: bare, env: { PGPASSWORD: PASSWORD } },
    'from PGPASSWORD, beside other parameters': {
      database: `${bare}?sslmode=disable`,
      env: { PGPASSWORD: PASSWORD },
    },
    'from PGPASSFILE': { database: bare, env: { PGPASSFILE: pgpass } },
    'from --database-password-file': { database: bare, args: ['--database-password-file', file] },
    'from PLANT_STORE_DATABASE_PASSWORD_FILE': {
      database: bare,
      env: { PLANT_STORE_DATABASE_PASSWORD_FILE: file },
    },
    'from the address before a file and PGPASSWORD': {
      database: url('plants'),
      args: ['--database-password-file', wrongFile],
      env: { PGPASSWORD: WRONG_PASSWORD },
    },
    'from a file before PGPASSWORD': {
      database: bare,
      args: ['--database-password-file', file],
      env: { PGPASSWORD: WRONG_PASSWORD },
    },
    'from a file, where the address has an empty one': {
      database: url('plants', 'keeper', '', ''),
      args: ['--database-password-file', file],
    },
    'from PGPASSWORD before PGPASSFILE': {
      database: bare,
      env: { PGPASSWORD: PASSWORD, PGPASSFILE: passwordFile('wrong.pgpass', `*:*:*:*:${WRONG_PASSWORD}\n`) },
    },
  };
  for (const [name, { database, args = [], env = {} }] of Object.entries(WAYS)) {
    test(name, async () => {
      const where = database === undefined ? [] : ['--database', database];
      const finished = await runInTime(['token', 'list', ...where, ...args], { env: env ?? {} });
      assert.deepEqual([finished.exitCode, finished.stderr], [0, '']);
      assert.match(finished.stdout, /^LABEL {2}/);
      assertTellsNothing(finished);
    });
  }
});

test('of services that start together on a new store one makes the token, and all know that there is one', async () => {
  const services = await Promise.all(
    Array.from({ length: 4 }, () => startTestService({ database: url('together') })),
  );
  try {
    assert.equal(services.filter(({ firstToken }) => firstToken !== undefined).length, 1);
    assert.deepEqual(
      services.map(({ hasToken }) => hasToken),
      [true, true, true, true],
    );
  } finally {
    for (const service of services) await service[Symbol.asyncDispose]();
  }
});

test('a service whose store goes away logs why, and no password', async () => {
  const service = await startServe(url('plants'));
  const client = new LoggingClient(service.url, service.token, []);
  let id = 0n;
  const status = async (): Promise<number | undefined> =>
    (await client.send({ id: ++id, name: 'Ficus' })).answer?.status;
  assert.equal(await status(), 200);

  await server.query(`ALTER ROLE keeper PASSWORD 'another'`);
  await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keeper'`);
  await until('a plant is refused', async () => (await status()) === 503);
  await server.query(`ALTER ROLE keeper PASSWORD ${sqlPassword}`);
  await until('a plant is taken', async () => (await status()) === 200);

  await server.kill();
  await until('a plant is refused', async () => (await status()) === 503);
  await server.startAgain();
  await until('a plant is taken', async () => (await status()) === 200);

  await client.close();
  const finished = await service.stop('SIGTERM');
  assert.equal(finished.exitCode, 0);
  assertTellsNothing(finished);
  const lines = finished.stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
  const causes = lines.filter(({ err }) => err !== undefined).map(({ err }) => err.message);
  assert.ok(
    causes.some(message => /password authentication failed/.test(message)),
    finished.stdout,
  );
  assert.ok(
    causes.some(message => /ECONNREFUSED|ECONNRESET|terminated/.test(message)),
    finished.stdout,
  );
});

function withoutPassword(text: string): string {
  return text.replace(/:[^:@]*@/, '@');
}

function passwordFile(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(path, text, { mode });
  return path;
}

function assertTellsNothing({ stdout, stderr }: Finished): void {
  for (const text of [stdout, stderr]) {
    // The token that `serve` shows once and the name of the folder are random, and may have these letters.
    assert.doesNotMatch(text.replaceAll(folder, '').replaceAll(/plant_\w+/g, ''), TELLTALE);
    assert.doesNotMatch(stderr, /^ {4}at /m);
  }
}
