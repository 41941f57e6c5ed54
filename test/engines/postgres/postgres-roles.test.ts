import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { queryOnce } from '../../harness/postgres-server.ts';
import {
  assertFailed,
  type Finished,
  FREE_PORTS,
  runProgram,
  sendPlant,
  startServe,
} from '../../harness/program.ts';
import { startTestService } from '../../harness/running-service.ts';
import { postgresUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const OWNER = 'secret of the owner';
const SERVICE = 'secret of the service';

const { server } = await postgresUnderTest();
const ownerUrl = server.url('plants', '', 'plant_owner', OWNER);
const serviceUrl = server.url('plants', '', 'plant_service', SERVICE);
await runEach(await statementsOf('postgresql-roles.sql'), server.url('postgres'));
await server.query(
  `ALTER ROLE plant_owner PASSWORD '${OWNER}'; ALTER ROLE plant_service PASSWORD '${SERVICE}'`,
);

/** Runs a command. Fails when it prints the password, which is in its database URL. */
async function run(database: string, ...args: string[]): Promise<Finished> {
  const finished = await runProgram([...args, '--database', database]);
  assert.doesNotMatch(finished.stdout + finished.stderr, /secret(?: |%20)of/);
  return finished;
}

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

test('the two roles of docs/postgresql-roles.sql and docs/postgresql-grants.sql have the rights they need', async () => {
  // The service and reading commands create no tables; `token create` of the owner does.
  for (const args of [['serve', ...FREE_PORTS], ['token', 'revoke', 'first'], ['export']]) {
    assertFailed(await run(serviceUrl, ...args), /^plant-store: [^\n]*there is no plant store [^\n]*\n$/);
  }
  const created = await run(ownerUrl, 'token', 'create', 'garden');
  const token = created.stdout.trim();
  assert.match(token, /^plant_\w+$/);
  assert.match(
    created.stderr,
    /^created a new store at postgres:\/\/plant_owner@\S+\ncreated token "garden" in \S+\n$/,
  );
  const grants = await statementsOf('postgresql-grants.sql');
  for (let time = 0; time < 2; time++) await runEach(grants, ownerUrl);

  await using service = await startServe(serviceUrl);
  assert.equal(service.token, '', 'the store has tokens');
  assert.equal(await sendPlant(service.url, token, 1n), 200);
  assert.equal((await run(serviceUrl, 'export')).stderr, '1 plant printed\n');
  assert.match((await run(serviceUrl, 'show', '1')).stdout, /^plant 1\nrevision 1 {2}\S+ {2}by garden /);
  assert.equal((await run(ownerUrl, 'token', 'create', 'field app', '--expires', '90d')).exitCode, 0);
  const again = await run(ownerUrl, 'token', 'create', 'field app');
  assertFailed(again, /a token with the label "field app" already exists/);
  assert.equal((await run(ownerUrl, 'token', 'revoke', 'field app')).exitCode, 0);
  assert.equal((await run(ownerUrl, 'token', 'revoke', 'none')).exitCode, 1);
  const today = new Date().toISOString().slice(0, 10);
  await until('the use of the token is stored', async () => {
    const { stdout } = await run(serviceUrl, 'token', 'list');
    assert.match(stdout, new RegExp(`^field app .* revoked ${today}T`, 'm'));
    return new RegExp(`^garden .* valid +${today}$`, 'm').test(stdout);
  });

  for (const sql of FORBIDDEN) await assert.rejects(queryOnce(serviceUrl, sql), { code: '42501' }, sql);
  assert.deepEqual(await queryOnce(serviceUrl, 'SELECT count(*) FROM plant'), [{ count: '1' }]);
  for (const args of [
    ['create', 'another'],
    ['revoke', 'garden'],
  ]) {
    assertFailed(
      await run(serviceUrl, 'token', ...args),
      /^plant-store: [^\n]* only the owner may create and revoke tokens, so name its role .*\n$/,
    );
  }

  const { exitCode, stdout } = await service.stop('SIGTERM');
  assert.equal(exitCode, 0);
  assert.doesNotMatch(stdout, /"err"/);
  await until('the connections are closed', async () => {
    const rows = await server.query(`SELECT pid FROM pg_stat_activity WHERE datname = 'plants'`);
    return rows.length === 0;
  });

  // The store after the owner has only created the tables: the log asks for a token.
  await server.query('DELETE FROM token; DELETE FROM plant_revision', 'plants');
  await using onTerminal = await startTestService({ database: serviceUrl });
  const logged =
    'no first token: this database user may not create tokens; create one as the owner of the store';
  assert.ok(onTerminal.logged.includes(logged));
});

async function statementsOf(name: string): Promise<string[]> {
  const file = await readFile(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');
  const statements = file.split(/(?<=;)$/m).filter(text => /;$/.test(text));
  assert.ok(statements.length >= 4);
  return statements;
}

async function runEach(statements: string[], url: string): Promise<void> {
  for (const statement of statements)
    await queryOnce(url, statement).catch(error => assert.fail(`${statement}: ${error.message}`));
}
