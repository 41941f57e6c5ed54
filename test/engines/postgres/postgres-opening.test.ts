import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { openReader } from '../../harness/open-store.ts';
import { assertFailed, type Finished, runProgram, sendPlant, startServe } from '../../harness/program.ts';
import { addToken } from '../../harness/running-service.ts';
import { openStore, postgresUnderTest } from '../../harness/store-under-test.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

/** Password of every role. It contains all special characters of URLs, SQL and password files. */
const PASSWORD = `Qz7@wX/?#:%&'\\Zk`;
const WRONG_PASSWORD = `Vb3@${PASSWORD}`;
/** Parts of both passwords. No message contains them. */
const TELLTALE = /Qz7|wX|Zk|Vb3/;

const folder = testFolder();
// Not the password file of the user who runs the tests.
process.env.PGPASSFILE = join(folder, 'none');
const under = await postgresUnderTest();
const { server } = under;
/** No server listens on port 1, which needs root. */
const CLOSED_PORT = '127.0.0.1:1';

const sqlPassword = `'${PASSWORD.replaceAll("'", "''")}'`;
for (const role of ['gardener', 'visitor', 'half', 'uninvited', 'crowded'])
  await server.query(`CREATE ROLE ${role} LOGIN PASSWORD ${sqlPassword}`);
for (const name of ['plants', 'newer', 'empty', 'frozen', 'closed'])
  await server.query(`CREATE DATABASE ${name} OWNER gardener`);
await server.query(`CREATE DATABASE latin OWNER gardener ENCODING 'LATIN1' TEMPLATE template0`);
await server.query(`ALTER ROLE crowded CONNECTION LIMIT 0; REVOKE CONNECT ON DATABASE closed FROM PUBLIC;
  ALTER DATABASE frozen SET default_transaction_read_only = on`);
const url = (database: string, role = 'gardener', parameters = '', password = PASSWORD): string =>
  server.url(database, parameters, role, password);
const bare = url('plants').replace(/:[^:@]*@/, '@');
const at = (host: string): string => url('plants').replace(/127.*\//, `${host}/`);
for (const database of ['plants', 'newer']) await (await openStore(url(database))).close();
await server.query('INSERT INTO plant_schema_step VALUES (99)', 'newer');
await server.query('GRANT SELECT ON plant_schema_step, token TO half', 'plants');

/** @returns the message; fails when it shows the password */
async function openingFailure(
  open: (database: string) => Promise<AsyncDisposable>,
  database: string,
): Promise<string> {
  const store = await open(database).catch((error: Error) => error);
  if (store instanceof Error) {
    assert.equal(store.constructor.name.slice(0, 5), 'Store', String(store.stack));
    assert.doesNotMatch(store.message, TELLTALE);
    assert.doesNotMatch(store.message, /\n/);
    return store.message;
  }
  // An open store would keep this process alive.
  await store[Symbol.asyncDispose]();
  return 'opened';
}

/** Every table, view and index of a database, with its columns. */
function catalogue(database: string): Promise<Record<string, unknown>[]> {
  const columns = `SELECT relname, relkind, attname, atttypid::regtype::text AS type
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0 ORDER BY relname, attnum`;
  return under.sql(database, columns);
}

/** A part of the message: of both openers, or of `serve` and of `export`. */
const FAULTS: [name: string, database: string, serveSays: RegExp, exportSays?: RegExp][] = [
  ['no server listens', at(CLOSED_PORT), /no server is listening there; start PostgreSQL, /],
  // A resolver may also time out.
  [
    'an unknown host',
    at('nowhere.invalid:5432'),
    /: (?:the host name is unknown; check it|PostgreSQL accepted no connection in time; )/,
  ],
  [
    'a wrong password',
    url('plants', 'gardener', '', WRONG_PASSWORD),
    /the server rejects the password; check /,
  ],
  ['no password', bare, /asks for a password; give one with PGPASSWORD, PGPASSFILE or PLANT_STORE_/],
  ['a database that does not exist', url('nowhere'), /does not exist; create it with CREATE DATABASE, /],
  [
    'no right to connect',
    url('closed', 'uninvited'),
    /lacks a right \(permission denied for database "closed"\)/,
  ],
  [
    'no right to create the tables',
    url('empty', 'visitor'),
    /no plant store yet, and this user may not create one \(permission denied .*\); as the role that owns the database, run `npx .* copy`/,
    /there is no plant store in this database; name an existing one with the database option; /,
  ],
  [
    'no right to write plants',
    url('plants', 'half'),
    /\(SELECT on plant_revision, INSERT on plant_revision, UPDATE \(last_used_day\) on token, SELECT on console_code, INSERT on console_code, DELETE on console_code, SELECT on console_session, INSERT on console_session, DELETE on console_session, UPDATE \(expires_at\) on console_session, SELECT on last_run, INSERT on last_run, UPDATE on last_run, SELECT on known_damage, INSERT on known_damage, UPDATE on known_damage\); grant it /,
    /the user lacks a right \(SELECT on plant_revision\); grant it with /,
  ],
  ['too many connections', url('plants', 'crowded'), /the server has no connection left \(.*\); raise max_/],
  [
    'a schema that is newer',
    url('newer'),
    /by a newer plant-store \(schema step 99, .* knows \d+\); use that one$/,
  ],
  [
    'the encoding LATIN1',
    url('latin'),
    /encoding LATIN1, .*; create one with CREATE DATABASE .* ENCODING 'UTF8'/,
  ],
  [
    'hosts that are read-only',
    url('frozen').replace('@', `@${CLOSED_PORT},`),
    /:\d+ is read-only .*; name the host /,
  ],
  [
    'an unknown server setting',
    url('plants', 'gardener', '?options=-c%20nonsense%3D1'),
    /the server rejects a setting \(unrecognized .* "nonsense"\); check the parameter options$/,
  ],
  [
    'a server without TLS',
    url('plants', 'gardener', '?sslmode=require'),
    /does not offer TLS; check sslmode, /,
  ],
];

suite('a store is not opened:', { concurrency: 3 }, () => {
  for (const [name, database, serveSays, exportSays = serveSays] of FAULTS)
    test(`${name}, and nothing is changed`, async () => {
      for (const [open, says] of [
        [openStore, serveSays],
        [openReader, exportSays],
      ] as const) {
        const message = await openingFailure(open, database);
        assert.match(message, /^the store at postgres:\/\/\w+@[^ ]+ cannot be opened: /);
        assert.match(message, says);
      }
    });

  for (const [what, statement] of [
    ['a view plant', 'CREATE VIEW plant AS SELECT 1 AS one'],
    ['a table plant_schema_step of text', 'CREATE TABLE plant_schema_step (step text)'],
  ] as const) {
    test(`${what} of another program exists, and does not change`, async () => {
      const database = await under.newDatabase();
      await under.sql(database, `${statement}; CREATE TABLE account (balance integer)`);
      const before = await catalogue(database);
      assert.match(
        await openingFailure(openStore, database),
        /another object in this database has a name that the plant store needs .*use a separate database, /,
      );
      assert.deepEqual(await catalogue(database), before);
    });
  }

  test('no failed attempt changed a database', async () => {
    for (const name of ['empty', 'latin', 'frozen']) {
      assert.deepEqual(await catalogue(server.url(name)), []);
    }
    const steps = await server.query('SELECT max(step) AS step FROM plant_schema_step', 'newer');
    assert.deepEqual(steps, [{ step: 99 }]);
  });
});

function passwordFile(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(path, text, { mode });
  return path;
}

function assertNoPassword({ stdout, stderr }: Finished): void {
  for (const text of [stdout, stderr]) {
    // The first token and the name of the folder are random and may contain these letters.
    assert.doesNotMatch(text.replaceAll(folder, '').replaceAll(/plant_\w+/g, ''), TELLTALE);
    assert.doesNotMatch(stderr, /^ {4}at /m);
  }
}

type Run = [args: string[], env?: Record<string, string>];

async function listTokens(database: string, [args, env = {}]: Run): Promise<Finished> {
  const finished = await runProgram(['token', 'list', '--database', database, ...args], { env });
  assertNoPassword(finished);
  return finished;
}

const FILE_FLAG = '--database-password-file';
const MISUSES: [name: string, exitCode: 1 | 2, says: RegExp, ...Run][] = [
  [
    ...(['a password file that other users may read', 1] as const),
    /^WARNING: password file ".*readable\.pgpass" has group or world access; .*\n.* asks for a password; give one with /,
    [],
    { PGPASSFILE: passwordFile('readable.pgpass', '', 0o644) },
  ],
  [
    ...(['a password instead of the path of its file', 2] as const),
    /the file that --database-password-file or .* names cannot be read \(E\w+\); give the path of a file/,
    [],
    { PLANT_STORE_DATABASE_PASSWORD_FILE: PASSWORD },
  ],
  ['an empty file', 2, / names is empty; put the password into it/, [FILE_FLAG, passwordFile('empty', '\n')]],
];

const passwordLine = `*:*:plants:gardener:${PASSWORD.replace(/[\\:]/g, '\\$&')}\n`;
const visitorLine = `127.0.0.1:${server.port}:plants:visitor:${WRONG_PASSWORD}\n`;
const pgpass = passwordFile('pgpass', `# others first\n${visitorLine}${passwordLine}`);
const wrongPgpass = passwordFile('wrong.pgpass', `*:*:*:*:${WRONG_PASSWORD}\n`);
const file = passwordFile('password', `${PASSWORD}\n`);
const wrongFile = passwordFile('wrong', WRONG_PASSWORD);
const WAYS: [way: string, database: string, ...Run][] = [
  ['from the URL before a file', url('plants'), [FILE_FLAG, wrongFile]],
  [
    'from a file before PGPASSWORD, with an empty password in the URL',
    url('plants', 'gardener', '', ''),
    [FILE_FLAG, file],
    { PGPASSWORD: WRONG_PASSWORD },
  ],
  [
    'from PGPASSWORD before PGPASSFILE, with other parameters',
    `${bare}?sslmode=disable`,
    [],
    { PGPASSWORD: PASSWORD, PGPASSFILE: wrongPgpass },
  ],
  ['from PGPASSFILE', bare, [], { PGPASSFILE: pgpass }],
];

suite('the password of the command line', { concurrency: 3 }, () => {
  for (const [name, exitCode, says, ...run] of MISUSES)
    test(`${name}: exit code ${exitCode}`, async () => {
      const finished = await listTokens(bare, run);
      assertFailed(finished, says, exitCode);
      assert.match(finished.stderr, /^(WARNING: .*\n)?plant-store: .*\n$/);
    });

  for (const [way, database, ...run] of WAYS)
    test(`is read ${way}`, async () => {
      const finished = await listTokens(database, run);
      assert.deepEqual([finished.exitCode, finished.stderr], [0, '']);
      assert.match(finished.stdout, /^LABEL {2}/);
    });
});

test('a service that loses its store logs the cause, and no password', async () => {
  await using service = await startServe(url('plants'));
  const token = await addToken(url('plants'), 'sender');
  let id = 0n;
  const untilStatus = (status: number): Promise<void> =>
    until(`the status is ${status}`, async () => {
      return (await sendPlant(service.url, token, ++id)) === status;
    });
  await untilStatus(200);
  await server.query(`ALTER ROLE gardener PASSWORD 'another'`);
  await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'gardener'`);
  await untilStatus(503);
  await server.query(`ALTER ROLE gardener PASSWORD ${sqlPassword}`);
  await untilStatus(200);

  const finished = await service.stop('SIGTERM');
  assert.equal(finished.exitCode, 0);
  assertNoPassword(finished);
  assert.match(finished.stdout, /"message":"password authentication failed/);
});
