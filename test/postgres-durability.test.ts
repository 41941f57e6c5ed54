import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { Connection } from '../src/store/postgres/connection.ts';
import { postgresAddressOf } from '../src/store/postgres/postgres-url.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { PostgresServer } from './harness/postgres-server.ts';
import { startServe } from './harness/program.ts';
import { until } from './harness/until.ts';
import { startTestService } from './running-service.ts';

const server = await PostgresServer.start();
after(() => server[Symbol.asyncDispose]());
await server.query(`CREATE ROLE careless LOGIN SUPERUSER PASSWORD 'secret'`);

/** Changes a setting in the file of the server; settles when new connections have it. */
async function setOnServer(name: string, value: string): Promise<void> {
  await server.set({ [name]: value });
  await until(`${name} is ${value}`, async () => (await server.query(`SHOW ${name}`))[0]![name] === value);
}

async function synchronousCommitOf(connection: Connection): Promise<string> {
  return (await connection.run({ text: 'SHOW synchronous_commit' }))[0]![0]!;
}

interface Careless {
  name: string;
  says: RegExp;
  /** @param database the name of the one that the service works on */
  spoil(database: string): Promise<unknown>;
  mend(database: string): Promise<unknown>;
}

const SYNCHRONOUS_COMMIT_SAYS =
  /^synchronous_commit is off on the PostgreSQL server, or for this role or database: this service turns it on for its own plants, .*; set synchronous_commit = on$/;
const CARELESS: Careless[] = [
  {
    name: 'fsync',
    says: /^fsync is off on the PostgreSQL server: plants that were answered 200 are lost, .*; set fsync = on$/,
    spoil: () => setOnServer('fsync', 'off'),
    mend: () => setOnServer('fsync', 'on'),
  },
  {
    name: 'full_page_writes',
    says: /^full_page_writes is off on the PostgreSQL server: a power failure may destroy .*; set full_page_writes = on$/,
    spoil: () => setOnServer('full_page_writes', 'off'),
    mend: () => setOnServer('full_page_writes', 'on'),
  },
  {
    name: 'synchronous_commit',
    says: SYNCHRONOUS_COMMIT_SAYS,
    spoil: () => setOnServer('synchronous_commit', 'off'),
    mend: () => setOnServer('synchronous_commit', 'on'),
  },
  {
    name: 'synchronous_commit of the role',
    says: SYNCHRONOUS_COMMIT_SAYS,
    spoil: () => server.query('ALTER ROLE careless SET synchronous_commit = off'),
    mend: () => server.query('ALTER ROLE careless RESET synchronous_commit'),
  },
  {
    name: 'synchronous_commit of the database',
    says: SYNCHRONOUS_COMMIT_SAYS,
    spoil: database => server.query(`ALTER DATABASE ${database} SET synchronous_commit = off`),
    mend: database => server.query(`ALTER DATABASE ${database} RESET synchronous_commit`),
  },
];

suite('a server that may lose plants is warned of', () => {
  for (const { name, says, spoil, mend } of CARELESS) {
    test(`${name}, from the start until it is mended`, async () => {
      const [database, url] = await newDatabase();
      await spoil(database);
      await using service = await startTestService({ database: url });
      assert.equal(service.warnings.length, 1, String(service.warnings));
      assert.match(service.warnings[0]!, says);
      await noteCommits(database);

      const { warnings } = service;
      for (let asked = 0; asked < 3; asked++) {
        assert.deepEqual(await readyz(service.opsUrl), { status: 'ready', warnings });
      }
      assert.deepEqual(service.logged, [`the store warns: ${warnings[0]}`], 'once');
      await sendPlants(service, 8);
      assert.deepEqual(await notedCommits(database), ['on']);

      await mend(database);
      await until('the warning is gone', async () => (await readyz(service.opsUrl)).warnings === undefined);
      assert.equal(service.logged.at(-1), 'the store has nothing to warn of any more');
    });
  }

  test('synchronous_commit, when it is turned off under a service, and its connections keep it on', async () => {
    const [database, url] = await newDatabase();
    await using service = await startTestService({ database: url });
    assert.deepEqual(service.warnings, []);
    await noteCommits(database);
    await sendPlants(service, 8);
    await setOnServer('synchronous_commit', 'off');
    try {
      await until('it is warned of', async () => (await readyz(service.opsUrl)).warnings?.length === 1);
      await sendPlants(service, 8);
      assert.deepEqual(await notedCommits(database), ['on']);
    } finally {
      await setOnServer('synchronous_commit', 'on');
    }
  });

  test('on stderr before the first plant, and in the log, by `serve`', async () => {
    const [, url] = await newDatabase();
    await server.query('ALTER ROLE careless SET synchronous_commit = off');
    await setOnServer('fsync', 'off');
    const service = await startServe(url);
    const { stdout, stderr } = await service.stop('SIGTERM');
    await setOnServer('fsync', 'on');
    await server.query('ALTER ROLE careless RESET synchronous_commit');
    assert.match(
      stderr,
      /^WARNING: fsync is off on the PostgreSQL server: .*\nWARNING: synchronous_commit is off on .*\nTaking plants at /m,
    );
    const lines = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line));
    const warned = lines.filter(({ level }) => level >= 40);
    assert.deepEqual(
      warned.map(({ msg }) => /^the store warns: (\w+) is off/.exec(msg)?.[1]),
      ['fsync', 'synchronous_commit'],
    );
  });
});

test('a service leaves synchronous_commit as it is where that is neither on nor off', async () => {
  const [database, url] = await newDatabase();
  for (const [set, found] of [
    ['off', 'on'],
    ['on', 'on'],
    ['local', 'local'],
    ['remote_apply', 'remote_apply'],
  ] as const) {
    await server.query(`ALTER DATABASE ${database} SET synchronous_commit = ${set}`);
    const address = postgresAddressOf(url);
    const connection = await Connection.open(address, address.hosts[0]!);
    assert.equal(await synchronousCommitOf(connection), found);
    await connection.close();
  }
});

/** @returns its name and its address, as the role `careless` */
async function newDatabase(): Promise<[name: string, url: string]> {
  const name = new URL(await server.createDatabase()).pathname.slice(1);
  return [name, server.url(name, '', 'careless', 'secret')];
}

/** Has the server note with which setting each revision is committed: only the session itself knows its own. */
async function noteCommits(database: string): Promise<void> {
  await server.query(
    `CREATE TABLE noted (setting text);
     CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN INSERT INTO noted VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
     CREATE TRIGGER note AFTER INSERT ON plant_revision EXECUTE FUNCTION note()`,
    database,
  );
}

async function notedCommits(database: string): Promise<unknown[]> {
  return (await server.query('SELECT DISTINCT setting FROM noted', database)).map(row => row.setting);
}

/** Side by side, so that several connections carry them. */
async function sendPlants({ url, token }: { url: string; token: string }, count: number): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const client = new LoggingClient(url, token, []);
      const { answer } = await client.send({ id: BigInt(index), name: `at ${performance.now()}` });
      await client.close();
      return answer?.status;
    }),
  );
  assert.deepEqual(answers, new Array(count).fill(200));
}

async function readyz(opsUrl: string): Promise<{ status: string; warnings?: string[] }> {
  const response = await fetch(`${opsUrl}/readyz`);
  return (await response.json()) as { status: string; warnings?: string[] };
}
