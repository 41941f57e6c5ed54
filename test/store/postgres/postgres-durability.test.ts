import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startServe } from '../../harness/program.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { newPlant, readyz, send } from '../../harness/store-outage.ts';
import { databaseName, postgresUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const { server } = await postgresUnderTest();
await server.query(`CREATE ROLE careless LOGIN SUPERUSER PASSWORD 'secret'`);
// The service needs the warnings of the server, and must change this setting.
await server.query('ALTER ROLE careless SET client_min_messages = error');

/** Changes a setting of the server. Settles when new connections have it. */
async function setOnServer(name: string, value: string): Promise<void> {
  await server.set({ [name]: value });
  await until(`${name} is ${value}`, async () => (await server.query(`SHOW ${name}`))[0]![name] === value);
}

/** @returns the name of a new database, and its URL with the role `careless` */
async function newDatabase(): Promise<[name: string, url: string]> {
  const name = databaseName(await server.createDatabase());
  return [name, server.url(name, '', 'careless', 'secret')];
}

/** Makes the server record the settings of each commit. Only the session itself knows them. */
async function noteCommits(database: string): Promise<void> {
  await server.query(
    `CREATE TABLE noted (settings text);
     CREATE FUNCTION note() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
       INSERT INTO noted VALUES (current_setting('synchronous_commit') || ' ' || current_setting('client_min_messages'));
       RETURN true; END $$;
     ALTER TABLE plant_revision ADD CHECK (note()) NOT VALID`,
    database,
  );
}

/** Sends plants on several connections. @returns the settings of their commits */
async function notedCommits(database: string, service: RunningService): Promise<unknown[]> {
  const responses = await Promise.all(Array.from({ length: 8 }, () => send(service, newPlant(), [])));
  for (const { status } of responses) assert.equal(status, 200);
  const rows = await server.query('SELECT DISTINCT settings FROM noted', database);
  return rows.map(({ settings }) => settings);
}

const FSYNC =
  /^fsync is off on the PostgreSQL server: plants confirmed with 200 may be lost, .*; set fsync = on$/;
const FULL_PAGE_WRITES =
  /^full_page_writes is off on the PostgreSQL server: a power failure may destroy .*; set full_page_writes = on$/;
const SYNCHRONOUS_COMMIT =
  /^synchronous_commit is off on the PostgreSQL server, or for this role or database: this service enables it for its own plants, .*; set synchronous_commit = on$/;

const CARELESS: [
  name: string,
  says: RegExp,
  set: (value: 'off' | 'on', database: string) => Promise<unknown>,
][] = [
  ['fsync', FSYNC, value => setOnServer('fsync', value)],
  ['full_page_writes', FULL_PAGE_WRITES, value => setOnServer('full_page_writes', value)],
  ['synchronous_commit', SYNCHRONOUS_COMMIT, value => setOnServer('synchronous_commit', value)],
  [
    'synchronous_commit of the database',
    SYNCHRONOUS_COMMIT,
    (value, database) =>
      server.query(
        `ALTER DATABASE ${database} ${value === 'off' ? 'SET synchronous_commit = off' : 'RESET synchronous_commit'}`,
      ),
  ],
];

suite('a warning about a server that may lose plants:', () => {
  for (const [name, says, set] of CARELESS) {
    test(`${name}, from the start until it is fixed; plants are flushed nevertheless`, async () => {
      const [database, url] = await newDatabase();
      await set('off', database);
      await using service = await startTestService({ database: url });
      const { warnings } = service;
      assert.equal(warnings.length, 1, String(warnings));
      assert.match(warnings[0]!, says);
      for (let asked = 0; asked < 3; asked++) {
        assert.deepEqual(await readyz(service), { status: 'ready', warnings });
      }
      assert.deepEqual(service.logged, [`the store warns: ${warnings[0]}`], 'once');
      await noteCommits(database);
      assert.deepEqual(await notedCommits(database, service), ['on warning']);

      await set('on', database);
      await until('the warning has ended', async () => (await readyz(service)).warnings === undefined);
      assert.equal(service.logged.at(-1), 'the store has nothing to warn of any more');
    });
  }

  test('synchronous_commit, disabled while the service runs; its connections keep it enabled', async () => {
    const [database, url] = await newDatabase();
    await using service = await startTestService({ database: url });
    assert.deepEqual(service.warnings, []);
    await noteCommits(database);
    await notedCommits(database, service);
    await setOnServer('synchronous_commit', 'off');
    try {
      await until('it warns', async () => (await readyz(service)).warnings?.length === 1);
      assert.deepEqual(await notedCommits(database, service), ['on warning']);
    } finally {
      await setOnServer('synchronous_commit', 'on');
    }
  });

  test('`serve` writes it to stderr before the first plant, and to the log', async () => {
    const [, url] = await newDatabase();
    await setOnServer('fsync', 'off');
    const service = await startServe(url);
    const { stdout, stderr } = await service.stop('SIGTERM');
    await setOnServer('fsync', 'on');
    assert.match(stderr, /^WARNING: fsync is off on the PostgreSQL server: .*\nAccepting plants at /m);
    assert.match(stdout, /^\{"level":40,.*"the store warns: fsync is off /m);
  });
});

test('a service does not change another value of synchronous_commit than off', async () => {
  for (const value of ['local', 'remote_apply']) {
    const [database, url] = await newDatabase();
    await server.query(`ALTER DATABASE ${database} SET synchronous_commit = ${value}`);
    await using service = await startTestService({ database: url });
    await noteCommits(database);
    assert.deepEqual(await notedCommits(database, service), [`${value} warning`]);
  }
});
