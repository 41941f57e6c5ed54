import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SCHEMA_STEPS as POSTGRES_STEPS } from '../../src/engines/postgres/schema/schema.ts';
import { SCHEMA_STEPS as SQLITE_STEPS } from '../../src/engines/sqlite/schema.ts';
import { fillStore, HARD_PLANTS } from '../harness/copied-stores.ts';
import { openReader } from '../harness/open-store.ts';
import { assertFailed, FREE_PORTS, runProgram, sendPlant, startServe } from '../harness/program.ts';
import {
  databaseName,
  type EngineUnderTest,
  openStore,
  postgresUnderTest,
  sqliteUnderTest,
} from '../harness/store-under-test.ts';

/** Runs the program of a later release. This process has the present program. */
const LATER = { nodeArgs: ['--import', import.meta.resolve('../harness/later-step.ts')] };

const SCHEMA = {
  SQLite: 'SELECT name, sql FROM sqlite_schema ORDER BY name',
  PostgreSQL: `SELECT table_name, column_name, data_type FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY table_name, column_name`,
};
/** As text, because a client of SQLite reads large integers only so. */
const ROWS = [
  `SELECT CAST(id AS text) AS id, revision, name, tag, recorded_at, recorded_by, CAST(checksum AS text)
    FROM plant_revision ORDER BY plant_revision.id, revision`,
  'SELECT * FROM token ORDER BY id',
];

const postgres = await postgresUnderTest();

for (const under of [sqliteUnderTest(), postgres]) {
  const present = (under.name === 'SQLite' ? SQLITE_STEPS : POSTGRES_STEPS).length;
  test(`in ${under.name} a later program updates the store once, and its plants and tokens stay`, () =>
    updates(under, present));
}

test('in PostgreSQL a role that may not update the store is told which one may', async () => {
  const database = await postgres.newDatabase();
  await (await openStore(database))[Symbol.asyncDispose]();
  const name = databaseName(database);
  await postgres.sql(
    database,
    `CREATE ROLE visitor LOGIN PASSWORD 'v'; GRANT SELECT ON plant_schema_step TO visitor`,
  );
  const url = postgres.server.url(name, '', 'visitor', 'v');
  assertFailed(
    await runProgram(['serve', ...FREE_PORTS, '--database', url], LATER),
    /it has schema step \d+, and this user may not update it to \d+ \(.*\); as the role that owns the database, run `npx .* token create /,
  );
});

async function updates(under: EngineUnderTest, present: number): Promise<void> {
  const rowsOf = (database: string) => Promise.all(ROWS.map(text => under.sql(database, text)));
  const database = await under.newDatabase();
  const tokens = await fillStore(database, HARD_PLANTS);
  const before = await rowsOf(database);
  assert.deepEqual(
    before.map(rows => rows.length),
    [HARD_PLANTS.length, 3],
  );
  const steps = `schema step ${present} and this program expects ${present + 1}`;
  assertFailed(
    await runProgram(['list', '--database', database], LATER),
    RegExp(`${steps}; start the service once`),
  );

  // Several instances may start at the same time, and one of them updates the schema.
  const starts = under.name === 'SQLite' ? 1 : 3;
  await using opened = new AsyncDisposableStack();
  const start = async (other = database) => opened.use(await startServe(other, [], LATER));
  const services = await Promise.all(Array.from({ length: starts }, () => start()));
  assert.deepEqual(await rowsOf(database), before);
  const fresh = await under.newDatabase();
  await start(fresh);
  const sql = SCHEMA[under.name];
  assert.deepEqual(await under.sql(database, sql), await under.sql(fresh, sql));
  assert.equal(await sendPlant(services[0]!.url, tokens.valid, 1n), 200);
  assert.equal(await sendPlant(services[0]!.url, tokens.revoked, 2n), 401);
  const { stderr, exitCode } = await runProgram(['token', 'create', 'new', '--database', database], LATER);
  assert.equal(exitCode, 0, stderr);
  assert.doesNotMatch(stderr, /schema|new store/);

  const logs = await Promise.all(services.map(async service => (await service.stop('SIGTERM')).stdout));
  logs.push((await (await start()).stop('SIGTERM')).stdout);
  const lines = logs.flatMap(log => log.split('\n').filter(line => line.includes('schema')));
  assert.deepEqual(
    lines.map(line => JSON.parse(line)).map(({ level, msg }) => [level, msg]),
    [[30, `the schema of the store was updated from step ${present} to step ${present + 1}`]],
  );
  for (const open of [openStore, openReader])
    await assert.rejects(open(database), /written by a newer plant-store/);
}
