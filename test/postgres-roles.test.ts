import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';
import pg from 'pg';
import { LoggingClient } from './harness/logging-client.ts';
import { PostgresServer } from './harness/postgres-server.ts';
import { runProgram, type ServeProcess, startServe } from './harness/program.ts';
import { until } from './harness/until.ts';

const OWNER = 'owner of plants';
const SERVICE = 'service of plants';

suite('the two roles of docs/postgresql-roles.sql and docs/postgresql-grants.sql', () => {
  let server: PostgresServer;
  let ownerUrl: string;
  let serviceUrl: string;
  const token = async (...args: string[]) => await runProgram(['token', ...args, '--database', ownerUrl]);
  const services: ServeProcess[] = [];
  const serve = async (database: string): Promise<ServeProcess> => {
    const service = await startServe(database);
    services.push(service);
    return service;
  };

  before(async () => {
    server = await PostgresServer.start();
    ownerUrl = server.url('plants', '', 'plant_owner', OWNER);
    serviceUrl = server.url('plants', '', 'plant_service', SERVICE);
    const first = await statementsOf('postgresql-roles.sql');
    await runEach(first, server.url('postgres'));
    await server.query(
      `ALTER ROLE plant_owner PASSWORD '${OWNER}'; ALTER ROLE plant_service PASSWORD '${SERVICE}'`,
    );
  });
  after(async () => {
    for (const { child } of services) child.kill('SIGKILL');
    await server[Symbol.asyncDispose]();
  });

  test('the service makes no tables, the first command of the owner does', async () => {
    const tooEarly = await runProgram(['serve', '--database', serviceUrl]);
    assert.equal(tooEarly.exitCode, 1);
    assert.match(
      tooEarly.stderr,
      /^plant-store: [^\n]*there is no plant store yet, and this user may not make one [^\n]*\n$/,
    );

    assert.equal((await token('create', 'made and revoked')).exitCode, 0);
    const second = await statementsOf('postgresql-grants.sql');
    await runEach(second, ownerUrl);
    await runEach(second, ownerUrl, 'may be run again');
  });

  test('plants are sent and revised, and a token of the owner is revoked', async () => {
    const { stdout } = await token('create', 'garden');
    const service = await serve(serviceUrl);
    assert.equal(service.token, '', 'the store has tokens');
    const client = new LoggingClient(service.url, stdout.trim(), []);
    for (const [name, revision] of [
      ['Ficus', 1],
      ['Ficus', 1],
      ['Ficus lyrata', 2],
    ] as const) {
      const { answer } = await client.send({ id: 9_007_199_254_740_993n, name });
      assert.equal(answer?.status, 200);
      assert.equal(answer.revision, revision);
    }
    const lastUse = `SELECT last_used_day FROM token WHERE label = 'garden'`;
    await until('the use of the token is noted', async () => {
      return (await server.query(lastUse, 'plants'))[0]!.last_used_day !== null;
    });
    const shown = await runProgram(['show', '9007199254740993', '--database', serviceUrl]);
    assert.match(shown.stdout, /^revision 2 .* by garden /m);

    assert.equal((await token('revoke', 'garden')).exitCode, 0);
    await until('the token is refused', async () => {
      return (await client.send({ id: 1n, name: 'Ficus' })).answer?.status === 401;
    });
    await client.close();
    const finished = await service.stop('SIGTERM');
    assert.equal(finished.exitCode, 0);
    assert.doesNotMatch(finished.stdout, /"err"/, 'no right was missed');
  });

  test('the service may do nothing else', async () => {
    const FORBIDDEN = [
      `UPDATE plant_revision SET name = 'x'`,
      'DELETE FROM plant_revision',
      'TRUNCATE plant_revision',
      'DROP TABLE plant_revision',
      `INSERT INTO token VALUES (9, 'h', 'l', 0, NULL, NULL, NULL, 9)`,
      'UPDATE token SET revoked_at = NULL',
      `UPDATE token SET hash = 'x'`,
      'DELETE FROM token',
      'INSERT INTO schema_step VALUES (2)',
      'CREATE TABLE another (id bigint)',
      'CREATE INDEX ON plant_revision (name)',
    ];
    const client = new pg.Client({ connectionString: serviceUrl });
    await client.connect();
    try {
      for (const sql of FORBIDDEN) await assert.rejects(client.query(sql), { code: '42501' }, sql);
      assert.equal((await client.query('SELECT name FROM plant')).rows[0].name, 'Ficus lyrata');
    } finally {
      await client.end();
    }
    for (const args of [
      ['create', 'another'],
      ['revoke', 'made and revoked'],
    ]) {
      const { exitCode, stdout, stderr } = await runProgram(['token', ...args, '--database', serviceUrl]);
      assert.deepEqual([exitCode, stdout], [1, '']);
      assert.match(
        stderr,
        /^plant-store: the store at [^\n]* only the owner of the store may make and revoke tokens; name its role in --database\n$/,
      );
    }
  });

  test('a store without a token is served, and says that one has to be made', async () => {
    // As it stands when an owner made the tables and nothing else.
    await server.query('DELETE FROM token; DELETE FROM plant_revision', 'plants');
    const service = await serve(serviceUrl);
    const { stdout } = await token('create', 'late');
    const client = new LoggingClient(service.url, stdout.trim(), []);
    assert.equal((await client.send({ id: 2n, name: 'Ficus' })).answer?.status, 200);
    await client.close();
    const finished = await service.stop('SIGTERM');
    assert.equal(finished.exitCode, 0);
    assert.match(
      finished.stderr,
      /^The store has no token; make one with: npx plant-store token create LABEL --database postgres:\/\/plant_service@[^ ]+$/m,
    );
    assert.match(
      finished.stdout,
      /"no first token is made: this service may make none; make one as the owner of the store"/,
    );
  });

  test('an upgrade is the owner’s', async () => {
    await server.query('DELETE FROM schema_step', 'plants');
    const { exitCode, stderr } = await runProgram(['serve', '--database', serviceUrl]);
    assert.equal(exitCode, 1);
    assert.match(
      stderr,
      /this user may not make one \(permission denied for schema public\); run `npx plant-store token create LABEL` once as the role that owns /,
    );
  });
});

/** The statements of one of the files in docs, as they are. */
async function statementsOf(name: string): Promise<string[]> {
  const file = await readFile(new URL(`../docs/${name}`, import.meta.url), 'utf8');
  const statements = file.split(/(?<=;)$/m).filter(text => /;$/.test(text));
  assert.ok(statements.length >= 4);
  return statements;
}

async function runEach(statements: string[], connectionString: string, what?: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  for (const statement of statements) {
    await client.query(statement).catch(error => assert.fail(`${what ?? ''} ${statement}: ${error.message}`));
  }
  await client.end();
}
