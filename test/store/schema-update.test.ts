import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hashToken, makeToken } from '../../src/auth/token.ts';
import { rowsOf } from '../harness/copied-stores.ts';
import { openReader } from '../harness/open-store.ts';
import { runProgram, sendPlant, startServe } from '../harness/program.ts';
import { type EngineUnderTest, enginesUnderTest, openNewStore, pathOf } from '../harness/store-under-test.ts';
import { insertSql, type Row, revisionOfRow } from '../harness/stored-revisions.ts';

const SCHEMA = {
  SQLite: 'SELECT name, sql FROM sqlite_schema ORDER BY name',
  PostgreSQL: `SELECT table_name, column_name, data_type FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY table_name, column_name`,
};
const TOKEN = makeToken();
/** The rows of a store that an earlier program wrote. */
const REVISIONS: Row[] = [
  [-9223372036854775808n, 1, 'oak', null, 5, 1],
  [9007199254740993n, 1, 'Ácer 🌳', '', 6, 2],
  [9007199254740993n, 2, 'Ácer', 'tree', 7, 1],
  [9223372036854775807n, 1, '', null, 8, 1],
];
const ROWS = `
  INSERT INTO token VALUES (1, '${hashToken(TOKEN)}', 'valid', 5, NULL, NULL, '2026-01-31', 1),
    (2, '${hashToken('revoked')}', 'revoked', 6, 4102444800000, 7, NULL, 3);
  ${insertSql(...REVISIONS)};`;

for (const under of await enginesUnderTest()) {
  const engine = under.name === 'SQLite' ? 'sqlite' : 'postgres';
  const files = globSync(fileURLToPath(new URL(`../../src/store/${engine}/schema/*.sql`, import.meta.url)));
  const steps = files.sort().map(file => readFileSync(file, 'utf8'));
  test(`in ${under.name} the program updates an old store once, and its plants and tokens stay`, () =>
    updates(under, steps[0]!, steps.length));
}

/** @param first the statements of the first schema step: of an old store all others are missing */
async function updates(under: EngineUnderTest, first: string, newest: number): Promise<void> {
  const database = await under.newDatabase();
  await makeStore(under, database, first);
  const message = RegExp(`schema step 1 .* expects ${newest}; start the service once`);
  await assert.rejects(openReader(database), { name: 'StoreRejected', message });

  // Several instances may start at the same time, and one of them updates the schema.
  const starts = under.name === 'SQLite' ? 1 : 3;
  await using opened = new AsyncDisposableStack();
  const start = async () => opened.use(await startServe(database));
  const services = await Promise.all(Array.from({ length: starts }, start));
  const before = await rowsOf(database);
  assert.deepEqual(before.revisions, REVISIONS.map(revisionOfRow));
  assert.deepEqual(
    before.tokens.map(each => [
      each.id,
      each.hash,
      each.label,
      each.createdAt,
      each.expiresAt,
      each.revokedAt,
    ]),
    [
      [1, hashToken(TOKEN), 'valid', 5, null, null],
      [2, hashToken('revoked'), 'revoked', 6, 4102444800000, 7],
    ],
  );
  await using fresh = await openNewStore(under);
  const sql = SCHEMA[under.name];
  assert.deepEqual(await under.sql(database, sql), await under.sql(fresh.database, sql));
  assert.equal(await sendPlant(services[0]!.url, TOKEN, 1n), 200);
  assert.equal(await sendPlant(services[0]!.url, 'revoked', 2n), 401);
  const { stderr, exitCode } = await runProgram(['token', 'create', 'new', '--database', database]);
  assert.equal(exitCode, 0, stderr);
  assert.doesNotMatch(stderr, /schema|new store/);

  const logs = await Promise.all(services.map(async service => (await service.stop('SIGTERM')).stdout));
  logs.push((await (await start()).stop('SIGTERM')).stdout);
  const lines = logs.flatMap(log => log.split('\n').filter(line => line.includes('schema')));
  assert.deepEqual(
    lines.map(line => JSON.parse(line)).map(({ level, msg }) => [level, msg]),
    [[30, `the schema of the store was updated from step 1 to step ${newest}`]],
  );
}

/** Makes the store that the program of that time made. */
async function makeStore(under: EngineUnderTest, database: string, step: string): Promise<void> {
  if (under.name === 'PostgreSQL') {
    const table = 'CREATE TABLE plant_schema_step (step integer NOT NULL PRIMARY KEY)';
    await under.sql(database, `${table}; INSERT INTO plant_schema_step VALUES (1); ${step}; ${ROWS}`);
    return;
  }
  using client = new DatabaseSync(pathOf(database));
  client.exec(`${step}; ${ROWS}; PRAGMA user_version = 1; PRAGMA application_id = ${0x504c5354}`);
}
