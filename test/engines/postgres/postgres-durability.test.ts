import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { StoreUnavailable } from '../../../src/core/commit/store-errors.ts';
import { problemText } from '../../../src/core/problem.ts';
import { loseFlushAtNextInsert } from '../../harness/lost-flush.ts';
import { openSearch } from '../../harness/open-store.ts';
import { PATIENCE } from '../../harness/postgres-server.ts';
import { assertFailed, runProgram, startServe } from '../../harness/program.ts';
import { addToken, type RunningService, startTestService } from '../../harness/running-service.ts';
import { newPlant, send } from '../../harness/store-outage.ts';
import { databaseName, openTokens, postgresUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const { server } = await postgresUnderTest();
await server.query(`CREATE ROLE careless LOGIN SUPERUSER PASSWORD 'secret'`);
// The service must change these settings: its statements depend on them.
const CARELESS_SETTINGS = [
  'client_min_messages = error',
  `default_transaction_isolation = 'serializable'`,
  'standard_conforming_strings = off',
  'quote_all_identifiers = on',
  `DateStyle = 'German'`,
  `TimeZone = 'Asia/Kathmandu'`,
  'lock_timeout = 1',
];
for (const setting of CARELESS_SETTINGS) await server.query(`ALTER ROLE careless SET ${setting}`);

/** @returns the name of a new database, and its URL with the role `careless` */
async function newDatabase(): Promise<[name: string, url: string]> {
  const name = databaseName(await server.createDatabase());
  return [name, server.url(name, PATIENCE, 'careless', 'secret')];
}

/** Changes settings of the server. Settles when new connections have them. */
async function setOnServer(names: string[], value: string): Promise<void> {
  await server.set(Object.fromEntries(names.map(name => [name, value])));
  for (const name of names)
    await until(`${name} is ${value}`, async () => (await server.query(`SHOW ${name}`))[0]![name] === value);
}

/** Makes the server record settings and process of each commit. Only the session itself knows them. */
async function noteCommits(database: string): Promise<void> {
  await server.query(
    `CREATE TABLE noted (settings text, pid integer);
     CREATE FUNCTION note() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
       INSERT INTO noted VALUES (NULL, pg_backend_pid());
       RETURN true; END $$;
     CREATE FUNCTION note_settings() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       UPDATE noted SET settings = concat_ws(' ', current_setting('synchronous_commit'),
        current_setting('client_min_messages'), current_setting('transaction_isolation'))
       WHERE settings IS NULL;
       RETURN NULL; END $$;
     CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON noted DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION note_settings();
     ALTER TABLE plant_revision ADD CHECK (note()) NOT VALID`,
    database,
  );
}

/** Sends plants, if several, on several connections. @returns the settings of their commits */
async function notedCommits(
  database: string,
  service: Pick<RunningService, 'url' | 'token'>,
  plants = 8,
): Promise<unknown[]> {
  const responses = await Promise.all(Array.from({ length: plants }, () => send(service, newPlant(), [])));
  for (const { status } of responses) assert.equal(status, 200);
  const rows = await server.query('SELECT DISTINCT settings FROM noted', database);
  return rows.map(({ settings }) => settings);
}

const SYNCHRONOUS_COMMIT =
  /^synchronous_commit is off on the PostgreSQL server, or for this role or database: this service enables it for its own plants, .*; set synchronous_commit = on, and restart the service$/;

test('serve warns of a server that may lose plants until it is fixed, and flushes plants nevertheless', async () => {
  const [database, url] = await newDatabase();
  const settings = ['fsync', 'full_page_writes', 'synchronous_commit'];
  await setOnServer(settings, 'off');
  await using serve = await startServe(url);
  await noteCommits(database);
  const token = await addToken(url, 'sender');
  assert.deepEqual(await notedCommits(database, { url: serve.url, token }), ['on warning read committed']);
  await setOnServer(settings, 'on');
  const ended = 'the store has nothing to warn of any more';
  await until('the warnings have ended', () => serve.logged().some(line => line.includes(ended)));
  const { stdout, stderr } = await serve.stop('SIGTERM');
  // Without a terminal, a store on PostgreSQL gets no first token.
  assert.match(
    stderr,
    /^The store has no token; create one with: npx plant-store token create LABEL --database postgres:\/\/careless@[^ ]+$/m,
  );
  assert.doesNotMatch(stdout + stderr, /plant_\w{36}/);
  for (const warning of [
    'fsync is off on the PostgreSQL server: plants confirmed with 200 may be lost, .*; set fsync = on',
    'full_page_writes is off on the PostgreSQL server: a power failure may destroy .*; set full_page_writes = on',
    SYNCHRONOUS_COMMIT.source.slice(1, -1),
  ]) {
    assert.match(stderr, new RegExp(`^WARNING: ${warning}\n[^]*^Accepting plants at `, 'm'));
    const logged = stdout.match(new RegExp(`^\\{"level":40,.*"the store warns: ${warning}"`, 'gm'));
    assert.equal(logged?.length, 1, 'once');
  }
});

test('on Aurora, full_page_writes is no warning, since nobody can turn it on', async () => {
  const [database, url] = await newDatabase();
  await using engine = await openTokens(url);
  await setOnServer(['full_page_writes'], 'off');
  try {
    const [warning] = await engine.warnings();
    assert.match(problemText(warning!), /^full_page_writes is off/);
    await server.query(`CREATE FUNCTION aurora_version() RETURNS text RETURN '16.4.0'`, database);
    assert.deepEqual(await engine.warnings(), []);
  } finally {
    await setOnServer(['full_page_writes'], 'on');
  }
});

test('synchronous_commit of the database changes while a service runs; only off is changed back', async () => {
  const [database, url] = await newDatabase();
  await using running = await startTestService({ database: url });
  assert.deepEqual(running.warnings, []);
  await noteCommits(database);
  const { token } = running;
  for (const [value, used, warnings] of [
    ['off', 'on', [SYNCHRONOUS_COMMIT]],
    ['local', 'local', []],
    ['remote_apply', 'remote_apply', []],
  ] as const) {
    const set = `ALTER DATABASE ${database} SET synchronous_commit = ${value}`;
    await server.query(`${set}; DELETE FROM noted`, database);
    // One plant: further connections would be new ones.
    const kept = await notedCommits(database, running, 1);
    assert.deepEqual(kept, ['on warning read committed'], 'its connection keeps the value');
    await using started = await startTestService({ database: url });
    assert.equal(started.warnings.length, warnings.length);
    for (const [index, says] of warnings.entries()) assert.match(problemText(started.warnings[index]!), says);
    await server.query('DELETE FROM noted', database);
    const noted = await notedCommits(database, { url: started.url, token });
    assert.deepEqual(noted, [`${used} warning read committed`]);
    // An insert also enables the setting, but then its connection is replaced.
    const lost = 'SELECT pid FROM noted WHERE pid NOT IN (SELECT pid FROM pg_stat_activity)';
    assert.deepEqual(await server.query(lost, database), [], 'a connection was replaced');
  }
});

test('a connection that lost its settings is replaced', async () => {
  const [database, url] = await newDatabase();
  await using running = await startTestService({ database: url });
  await noteCommits(database);
  const untilConnectionEnded = await loseFlushAtNextInsert(sql => server.query(sql, database));
  for (let plant = 1; plant <= 2; plant++)
    assert.deepEqual(await notedCommits(database, running, 1), ['on warning read committed']);
  await untilConnectionEnded();
});

test('settings of a role and policies change no result of a command or a search', async () => {
  const [database, url] = await newDatabase();
  await using running = await startTestService({ database: url });
  for (const name of ['Bříza', 'oak'])
    assert.equal((await send(running, { ...newPlant(), name }, [])).status, 200);
  await using search = await openSearch(url);
  const { plants } = await search.page({ name: 'briza' }, 10, 1_000);
  assert.deepEqual(
    plants.map(({ plant }) => plant.name),
    ['Bříza'],
  );
  const verified = await runProgram(['verify', '--database', url]);
  assert.deepEqual([verified.exitCode, /2 revisions/.test(verified.stdout)], [0, true], verified.stderr);
  // Both URLs name the same store, with other settings.
  assertFailed(
    await runProgram(['copy', '--from', url, '--to', server.url(database)]),
    /name the same store/,
  );
  await server.query(
    `CREATE ROLE reader LOGIN PASSWORD 'secret';
     GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
     ALTER TABLE plant_revision ENABLE ROW LEVEL SECURITY;
     CREATE POLICY few ON plant_revision USING (name <> 'oak')`,
    database,
  );
  const exported = await runProgram(['export', '--database', server.url(database, '', 'reader', 'secret')]);
  assert.deepEqual([exported.exitCode, /row-level security/.test(exported.stderr)], [1, true]);
});

test('a user who may not confirm commits is told the grant that helps', async () => {
  const [name] = await newDatabase();
  await server.query(`CREATE ROLE strict LOGIN PASSWORD 'secret'; ALTER DATABASE ${name} OWNER TO strict;
    ALTER ROLE strict SET synchronous_commit = local`);
  const emit = 'pg_logical_emit_message(boolean, text, text, boolean)';
  await server.query(`REVOKE EXECUTE ON FUNCTION ${emit} FROM PUBLIC`, name);
  await using engine = await openTokens(server.url(name, '', 'strict', 'secret'));
  await setOnServer(['synchronous_standby_names'], 'missing');
  try {
    let grant = '';
    await assert.rejects(engine.warnings(), ({ message }) => {
      grant = /run this in the database as a superuser: (GRANT EXECUTE .*)$/.exec(message)?.[1] ?? message;
      return true;
    });
    await server.query(`SET synchronous_commit = local; ${grant}`, name);
    assert.deepEqual(await engine.warnings(), []);
  } finally {
    await server.set({ synchronous_standby_names: `''` });
  }
});

test('a token that an earlier attempt stored or revoked is shown only when the standby has it', async () => {
  const [name, url] = await newDatabase();
  await using engine = await openTokens(url);
  const token = { hash: 'a'.repeat(64), label: 'stored', createdAt: 1, expiresAt: null };
  const stored = await engine.tokenTable.createToken(token);
  await engine.tokenTable.createToken({ ...token, hash: 'b'.repeat(64), label: 'revoked' });
  const revoked = await engine.tokenTable.revokeToken('revoked', 2);
  const again = () => [engine.tokenTable.createToken(token), engine.tokenTable.revokeToken('revoked', 2)];
  {
    // As on Citus while all workers are away, plants cannot be stored.
    const other = new pg.Client({ connectionString: server.url(name) });
    await other.connect();
    await other.query('BEGIN; LOCK TABLE plant_revision');
    assert.deepEqual(await Promise.all(again()), [stored, revoked]);
    await other.end();
  }
  await setOnServer(['synchronous_standby_names'], 'missing');
  try {
    await Promise.all(again().map(change => assert.rejects(change, StoreUnavailable)));
  } finally {
    await server.set({ synchronous_standby_names: `''` });
  }
});
