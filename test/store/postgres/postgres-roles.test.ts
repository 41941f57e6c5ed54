import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import {
  type Finished,
  FREE_PORTS,
  runProgram,
  type ServeProcess,
  sendPlant,
  startServe,
} from '../../harness/program.ts';
import { startTestService } from '../../harness/running-service.ts';
import { postgresUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const OWNER = 'secret of the owner';
const SERVICE = 'secret of the service';
/** Real data: species of street trees, in the order of their ids. */
const TREES = fileURLToPath(new URL('../../../examples/us-trees.csv', import.meta.url));
/** A change of a token takes effect within this time on every instance. */
const EFFECT_WITHIN_MS = 5_000;

const { server } = await postgresUnderTest();
const ownerUrl = server.url('plants', '', 'plant_owner', OWNER);
const serviceUrl = server.url('plants', '', 'plant_service', SERVICE);
await runEach(await statementsOf('postgresql-roles.sql'), server.url('postgres'));
await server.query(
  `ALTER ROLE plant_owner PASSWORD '${OWNER}'; ALTER ROLE plant_service PASSWORD '${SERVICE}'`,
);
const services: ServeProcess[] = [];
// The services of a failed test would keep this process alive.
after(() => {
  for (const { child } of services) child.kill('SIGKILL');
});

async function serve(): Promise<ServeProcess> {
  const service = await startServe(serviceUrl);
  services.push(service);
  return service;
}

/** Runs a command. Fails when it prints the password, which is in its database URL. */
async function run(database: string, ...args: string[]): Promise<Finished> {
  const finished = await runProgram([...args, '--database', database]);
  assert.doesNotMatch(finished.stdout + finished.stderr, /secret(?: |%20)of/);
  return finished;
}

/** Settles when each service accepts or rejects the token. Fails after the promised time. */
async function untilAccepted(token: string, isAccepted: boolean): Promise<void> {
  const since = performance.now();
  for (const { url } of services) {
    while ((await sendPlant(url, token, 1n)) !== (isAccepted ? 200 : 401)) {
      assert.ok(performance.now() - since < EFFECT_WITHIN_MS, `it takes longer than ${EFFECT_WITHIN_MS} ms`);
      await wait(20);
    }
  }
}

suite('the command line with the two roles of docs/postgresql-roles.sql and docs/postgresql-grants.sql', () => {
  let token: string;

  test('the service and reading commands create no tables; the owner creates them with `token create`', async () => {
    const NO_STORE = /^plant-store: [^\n]*there is no plant store [^\n]*\n$/;
    for (const args of [['serve', ...FREE_PORTS], ['token', 'revoke', 'first'], ['export']]) {
      const { exitCode, stdout, stderr } = await run(serviceUrl, ...args);
      assert.deepEqual([exitCode, stdout], [1, '']);
      assert.match(stderr, NO_STORE);
    }
    const created = await run(ownerUrl, 'token', 'create', 'garden');
    token = created.stdout.trim();
    assert.match(token, /^plant_\w+$/);
    assert.match(
      created.stderr,
      /^created a new store at postgres:\/\/plant_owner@\S+\ncreated token "garden" in \S+\n$/,
    );
    const grants = await statementsOf('postgresql-grants.sql');
    for (let time = 0; time < 2; time++) await runEach(grants, ownerUrl);
  });

  test('real data is imported through one of two services, and the export equals it', async () => {
    const { url } = await serve();
    assert.equal((await serve()).token, '', 'the store has tokens');
    const importTrees = () => runProgram(['import', TREES, '--url', url, '--token', token]);
    const first = await importTrees();
    assert.deepEqual([first.exitCode, first.stderr], [0, '']);
    assert.match(first.stdout, /^2,257 rows: 2,257 created, 0 unchanged, 0 revised, 0 rejected/);
    assert.match((await importTrees()).stdout, /^2,257 rows: 0 created, 2,257 unchanged/);
    const csv = await run(serviceUrl, 'export');
    assert.equal(csv.stdout, await readFile(TREES, 'utf8'));
    assert.equal(csv.stderr, '2,257 plants printed\n');
    assert.match((await run(serviceUrl, 'show', '11')).stdout, /^plant 11\nrevision 1 {2}\S+ {2}by garden /);
  });

  test('the owner creates, lists and revokes tokens, and both services notice within 5 s', async () => {
    const created = await run(ownerUrl, 'token', 'create', 'field app', '--expires', '90d');
    await untilAccepted(created.stdout.trim(), true);
    const again = await run(ownerUrl, 'token', 'create', 'field app');
    assert.deepEqual([again.exitCode, again.stdout], [1, '']);
    assert.match(again.stderr, /a token with the label "field app" already exists/);
    assert.equal((await run(ownerUrl, 'token', 'revoke', 'field app')).exitCode, 0);
    await untilAccepted(created.stdout.trim(), false);
    await untilAccepted(token, true);
    assert.equal((await run(ownerUrl, 'token', 'revoke', 'none')).exitCode, 1);

    const today = new Date().toISOString().slice(0, 10);
    await until('the use of the tokens is stored', async () => {
      const { stdout } = await run(serviceUrl, 'token', 'list');
      const states = stdout
        .trimEnd()
        .split('\n')
        .slice(1)
        .map(line => line.split(/ {2,}/));
      assert.deepEqual(
        states.map(([label, , , state]) => [label, state]),
        [
          ['garden', 'valid'],
          ['field app', `revoked ${today}`],
        ],
      );
      return states.every(([, , , , lastUsed]) => lastUsed === today);
    });
  });

  test('the service has no other rights', async () => {
    const FORBIDDEN = [
      `UPDATE plant_revision SET name = 'x'`,
      'DELETE FROM plant_revision',
      'TRUNCATE plant_revision',
      'DROP TABLE plant_revision',
      `INSERT INTO token VALUES (9, 'h', 'l', 0, NULL, NULL, NULL, 9)`,
      'UPDATE token SET revoked_at = NULL',
      `UPDATE token SET hash = 'x'`,
      'DELETE FROM token',
      'INSERT INTO plant_schema_step VALUES (2)',
      'CREATE TABLE another (id bigint)',
      'CREATE INDEX ON plant_revision (name)',
    ];
    const client = new pg.Client({ connectionString: serviceUrl });
    await client.connect();
    try {
      for (const sql of FORBIDDEN) await assert.rejects(client.query(sql), { code: '42501' }, sql);
      assert.equal((await client.query('SELECT count(*) FROM plant')).rows[0].count, '2258');
    } finally {
      await client.end();
    }
    for (const args of [
      ['create', 'another'],
      ['revoke', 'garden'],
    ]) {
      const { exitCode, stdout, stderr } = await run(serviceUrl, 'token', ...args);
      assert.deepEqual([exitCode, stdout], [1, '']);
      assert.match(
        stderr,
        /^plant-store: the store at [^\n]* only the owner of the store may create and revoke tokens; name the role of the owner in --database\n$/,
      );
    }
  });

  test('the services end normally, missed no right, and close their connections', async () => {
    for (const service of services) {
      const { exitCode, stdout } = await service.stop('SIGTERM');
      assert.equal(exitCode, 0);
      assert.doesNotMatch(stdout, /"err"/);
    }
    await until('the connections are closed', async () => {
      const rows = await server.query(`SELECT pid FROM pg_stat_activity WHERE datname = 'plants'`);
      return rows.length === 0;
    });
  });

  test('a store without a token is served, and the log asks for a token', async () => {
    // The store after the owner has only created the tables.
    await server.query('DELETE FROM token; DELETE FROM plant_revision', 'plants');
    const service = await serve();
    const { exitCode, stderr } = await service.stop('SIGTERM');
    assert.equal(exitCode, 0);
    assert.match(
      stderr,
      /^The store has no token; create one with: npx plant-store token create LABEL --database postgres:\/\/plant_service@[^ ]+$/m,
    );
    await using onTerminal = await startTestService({ database: serviceUrl });
    const logged =
      'no first token: this database user may not create tokens; create one as the owner of the store';
    assert.ok(onTerminal.logged.includes(logged));
  });
});

/** The SQL statements of a file in docs. */
async function statementsOf(name: string): Promise<string[]> {
  const file = await readFile(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');
  const statements = file.split(/(?<=;)$/m).filter(text => /;$/.test(text));
  assert.ok(statements.length >= 4);
  return statements;
}

async function runEach(statements: string[], connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  for (const statement of statements) {
    await client.query(statement).catch(error => assert.fail(`${statement}: ${error.message}`));
  }
  await client.end();
}
