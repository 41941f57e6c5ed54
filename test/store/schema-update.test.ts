import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hashToken, makeToken } from '../../src/auth/token.ts';
import { StoreRejected } from '../../src/store/plant-store.ts';
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
  // Of an old store all later steps are missing.
  test(`in ${under.name} the program updates an old store once, and its plants and tokens stay`, () =>
    updatesFrom(under, steps.slice(0, 1), steps.length));
}

async function updatesFrom(under: EngineUnderTest, earlier: string[], newest: number): Promise<void> {
  const database = await under.newDatabase();
  await makeStore(under, database, earlier);
  const outdated = new RegExp(`schema step ${earlier.length} .* expects ${newest}; start the service once`);
  await assert.rejects(openReader(database), error => {
    return error instanceof StoreRejected && outdated.test(error.message);
  });

  // Several instances may start at the same time, and one of them updates the schema.
  const starts = under.name === 'SQLite' ? 1 : 3;
  await using opened = new AsyncDisposableStack();
  const start = async () => opened.use(await startServe(database));
  const services = await Promise.all(Array.from({ length: starts }, start));
  const before = await rowsOf(database);
  assert.deepEqual(before.revisions, REVISIONS.map(revisionOfRow));
  assert.deepEqual(
    before.tokens.map(({ lastUsedDay: _, ...token }) => token),
    [
      { id: 1, hash: hashToken(TOKEN), label: 'valid', createdAt: 5, expiresAt: null, revokedAt: null },
      {
        id: 2,
        hash: hashToken('revoked'),
        label: 'revoked',
        createdAt: 6,
        expiresAt: 4102444800000,
        revokedAt: 7,
      },
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
    [[30, `the schema of the store was updated from step ${earlier.length} to step ${newest}`]],
  );
}

/** Makes the store that the program of that time made. */
async function makeStore(under: EngineUnderTest, database: string, steps: string[]): Promise<void> {
  const sql = [...steps, ROWS].join('\n');
  if (under.name === 'PostgreSQL') {
    const numbers = steps.map((_, index) => `(${index + 1})`);
    const table = 'CREATE TABLE plant_schema_step (step integer NOT NULL PRIMARY KEY)';
    await under.sql(database, `${table}; INSERT INTO plant_schema_step VALUES ${numbers}; ${sql}`);
    return;
  }
  using client = new DatabaseSync(pathOf(database));
  client.exec(`${sql}; PRAGMA user_version = ${steps.length}; PRAGMA application_id = ${0x504c5354}`);
}
