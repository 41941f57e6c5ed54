import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import type { DamageRecord } from '../../src/engines/tables/damage-record.ts';
import { runText } from '../../src/operate/health/known-damage.ts';
import { SealDigest } from '../../src/proof/seal.ts';
import { commandProcess } from '../harness/command-lines.ts';
import { fillStore, HARD_PLANTS } from '../harness/copied-stores.ts';
import { openCommandStore, openReader } from '../harness/open-store.ts';
import { PostgresProxy } from '../harness/postgres-proxy.ts';
import { assertFailed, type Finished } from '../harness/program.ts';
import { type EngineUnderTest, enginesUnderTest, pathOf } from '../harness/store-under-test.ts';
import { changeRows, insertSql, type Row, revisionOfRow } from '../harness/stored-revisions.ts';
import { testFolder } from '../harness/test-folder.ts';

const folder = testFolder();
const [sqlite, postgres] = await enginesUnderTest();

/** Every hundredth plant has two revisions. */
const ROWS = Array.from({ length: 1_500 }, (_, index) => index * 10).flatMap((id): Row[] => {
  const tag = id % 2_000 === 0 ? '' : 'tag';
  const second: Row[] = id % 1_000 === 0 ? [[id, 2, 'again', tag, 2_000, 2]] : [];
  return [[id, 1, `Ácer "${id}" \\ 🌳`, null, 1_000, 1], ...second];
});
/** The documented input of the digest. */
const LINES = ROWS.map(([id, ...rest]) => `${JSON.stringify([String(id), ...rest])}\n`);
const SHA256 = createHash('sha256').update(LINES.join('')).digest('hex');
const SEAL = `plant-store seal 1 1970-01-01T00:00:02.000Z 1500 plants 1515 revisions sha256:${SHA256}\n`;
const SEAL_FILE = join(folder, 'rows.seal');
writeFileSync(SEAL_FILE, SEAL);

const commands = commandProcess(folder);

function run(command: string, database: string, ...args: string[]): Promise<Finished> {
  return commands.run({ args: [command, '--database', database, ...args] });
}

function verify(database: string, ...args: string[]): Promise<Finished> {
  return run('verify', database, ...args);
}

/** A new store with ROWS. */
async function storeWithRows(engine: EngineUnderTest): Promise<string> {
  const database = await engine.newDatabase();
  await fillStore(database, []);
  await engine.sql(database, insertSql(...ROWS));
  if (engine === postgres) await engine.sql(database, 'CREATE EXTENSION amcheck');
  return database;
}

async function lastRun(database: string): Promise<string | undefined> {
  const store = await openCommandStore(database);
  const runs = await store.operatorTables.lastRuns().finally(() => store.close());
  const run = runs.find(({ command }) => command === 'verify');
  return run && runText(run);
}

async function knownDamage(database: string): Promise<DamageRecord | undefined> {
  await using reader = await openReader(database);
  return await reader.knownDamage();
}

test('the line of a store is that of its backup', async () => {
  const original = await sqlite.newDatabase();
  await fillStore(original, HARD_PLANTS);
  const backup = join(folder, 'backup.db');
  assert.equal((await run('backup', original, backup)).exitCode, 0);
  const made = readFileSync(backup);
  const { stdout: first } = await verify(original);
  assert.match(first, /^plant-store seal 1 20\S+Z 7 plants 21 revisions sha256:[0-9a-f]{64}\n$/);
  assert.equal((await verify(`sqlite:${backup}`)).stdout, first);
  assert.ok(made.equals(readFileSync(backup)), 'a backup stays as it is');
  const seal = readFileSync(`${backup}.seal`, 'utf8');
  assert.ok(seal.startsWith(first), seal);
  assert.equal(statSync(`${backup}.seal`).mode & 0o777, 0o600);
  const sealElsewhere = join(folder, 'elsewhere.seal');
  renameSync(`${backup}.seal`, sealElsewhere);
  assert.equal((await verify(`sqlite:${backup}`, '--against', sealElsewhere)).stdout, first);
  assert.ok(made.equals(readFileSync(backup)), 'a backup stays as it is without its seal beside it');
  // A restored store is noted, also before a service uses it.
  const restored = await sqlite.newDatabase();
  copyFileSync(backup, pathOf(restored));
  assert.equal((await verify(restored)).stdout, first);
  assert.equal(await lastRun(restored), 'no fault found in 7 plants and 21 revisions');
});

const lose = (what: string): string => `DELETE FROM plant_revision WHERE ${what}`;

/** Changes of ROWS, and what is said of them. */
const CHANGES: [changes: string[], says: RegExp][] = [
  // Newer plants and revisions are no difference.
  [
    [insertSql([5, 1, 'new', null, 3_000, 1], [10, 2, 'new', null, 3_000, 1])],
    /^the store still holds all 1,515 /,
  ],
  [
    [lose('id = 7010')],
    /1,515 revisions, and the store has 1,514 intact ones up to that time\nFAULTS FOUND.* "Seals"\n$/,
  ],
  [[lose('id = 9000 AND revision = 2')], / has 1,514 intact .*\nFAULTS FOUND/],
  [
    [lose('id = 9000 AND revision = 1')],
    /^plant-store: plant 9000 has a revision 2, but no revision 1\n.* does not hold.*\n.* "Damaged stores"\n$/,
  ],
  // The checksum fits the changed row.
  [
    [lose('id = 5010'), insertSql([5010, 1, 'Plant 5010', null, 1_000, 1])],
    /has 1,515 intact ones up to that time\nFAULTS FOUND/,
  ],
  [
    [`UPDATE plant_revision SET name = 'plant 5011' WHERE id = 5010`],
    /^plant-store: revision 1 of plant 5010 is damaged: its checksum is wrong\nplant-store: the store does/,
  ],
  [[insertSql([5, 1, 'new', null, 1_500, 1])], /has 1,516 intact .*\nFAULTS/],
  [
    [`UPDATE plant_revision SET recorded_by = 3`],
    /^(plant-store: revision \d of plant \d+ is damaged: .*\n){100}plant-store: 1415 more faults\nplant-store: the/,
  ],
];

for (const engine of [sqlite, postgres]) {
  test(`verify on ${engine.name} finds each difference from a seal`, async () => {
    for (const [changes, says] of CHANGES) {
      const database = await storeWithRows(engine);
      for (const sql of changes) await changeRows(engine, database, sql);
      const { exitCode, stdout, stderr } = await verify(database, '--against', SEAL_FILE);
      assert.match(stderr, says);
      assert.equal(exitCode, stderr.includes('plant-store:') ? 1 : 0);
      const line = /^plant-store seal 1 1970\S+Z \d+ plants \d+ revisions \S+\n$/;
      assert.match(stdout, exitCode === 0 ? line : /^$/);
      assert.ok((await lastRun(database))!.includes(exitCode === 0 ? 'no fault' : 'FAULTS FOUND: '));
    }
  });
}

for (const engine of [sqlite, postgres]) {
  test(`a seal of another store counts as damage on ${engine.name} until verify passes`, async () => {
    const database = await storeWithRows(engine);
    const otherStore = `plant-store seal 1 2026-11-22T10:00:00.000Z 3 plants 4 revisions sha256:${'5'.repeat(64)}`;
    const foreign = await verify(database, '--against', otherStore);
    assertFailed(
      foreign,
      /^plant-store: the store has no intact revision from 2026-11-22T.*another store.*\n.* "Seals"\n$/,
    );
    assert.equal(foreign.stdout, '');
    assert.match(
      (await knownDamage(database))!.foundBy,
      /^verify: the store has no intact revision from 2026/,
    );
    await verify(database);
    assert.equal(await knownDamage(database), undefined);
  });
}

test('--seal writes the line to a new file, and --against accepts the line itself', async () => {
  const database = await storeWithRows(sqlite);
  const file = join(folder, 'new.seal');
  const { stdout, stderr } = await verify(database, '--seal', file);
  assert.deepEqual([stdout, stderr], [SEAL, `wrote the seal to ${file}\n`]);
  assert.equal(readFileSync(file, 'utf8'), SEAL);
  const again = await verify(database, '--seal', file);
  assert.match(again.stderr, /^plant-store: .*new\.seal already exists and was not changed; name another f/);
  const line = ` ${SEAL.replaceAll(' ', '  ')}\r\n`;
  assert.equal((await verify(database, '--against', line)).exitCode, 0);
  assert.equal(await lastRun(database), 'no fault found in 1,500 plants and 1,515 revisions');
});

test('a plant stored under a clock that was ahead breaks no seal, and a backup covers it', async () => {
  for (const engine of [sqlite, postgres]) {
    const database = await storeWithRows(engine);
    await engine.sql(database, insertSql([5, 1, 'ahead', null, Date.now() + 1e12, 1]));
    const { stdout, stderr } = await verify(database);
    assert.equal(stdout, SEAL);
    assert.match(stderr, /^WARNING: 1 revision has a time ahead of this machine's clock; /);
    const backup = join(mkdtempSync(join(folder, 'ahead-')), 'backup.db');
    const proofs = [stdout];
    if (engine === sqlite) {
      assert.match((await run('backup', database, backup)).stderr, /^WARNING: 1 rev/);
      proofs.push(`${backup}.seal`);
    }
    await engine.sql(database, insertSql([15, 1, 'since', null, Date.now(), 1]));
    for (const proof of proofs) assert.equal((await verify(database, '--against', proof)).exitCode, 0);
    if (engine === postgres) continue;
    await changeRows(engine, database, 'DELETE FROM plant_revision WHERE id = 5');
    const lost = await verify(database, '--against', `${backup}.seal`);
    assert.match(lost.stderr, / has 1,516 revisions, and the store has 1,515 /);
  }
});

test('a seal that would list more than 100,000 revisions lists none', () => {
  const digest = SealDigest.ofAllListingAfter(0);
  for (let number = 1; number <= 100_001; number++)
    digest.add(revisionOfRow([1, number, 'plant', null, 1_000, 1]));
  const { revisions, newest } = digest.seal();
  assert.deepEqual([revisions, newest], [100_001, undefined]);
});

test('a damaged page and a missing amcheck are reported', async () => {
  const database = await storeWithRows(sqlite);
  const path = pathOf(database);
  const page = openSync(path, 'r+');
  writeSync(page, Buffer.alloc(64, 0xff), 0, 64, 20 * 4096);
  closeSync(page);
  assertFailed(
    await verify(database),
    /^plant-store: the store is damaged: not all of .*\nplant-store: structure: Tree \d+ page 21.*\n.*malformed.*\n.* "Damaged stores"\n$/,
  );
  assert.match((await lastRun(database))!, /^FAULTS FOUND: the store is damaged: not all of its rev/);
  const target = await sqlite.newDatabase();
  assert.equal((await commands.run({ args: ['copy', '--from', database, '--to', target] })).exitCode, 1);
  const copied = (await run('export', target)).stdout.split('\n').length;
  assert.ok(copied > 100, `${copied} lines before the damaged page`);
  const without = await postgres.newDatabase();
  await fillStore(without, []);
  const unchecked = await verify(without);
  assert.equal(unchecked.exitCode, 0);
  assert.match(unchecked.stderr, /^WARNING: pages and indexes were not checked: the database lacks the ext/);
});

test('a seal waits for inserts that the server begins late, and for those that take long', async () => {
  const database = await postgres.newDatabase();
  await fillStore(database, []);
  await using proxy = await PostgresProxy.start(Number(new URL(database).port));
  const older = new pg.Client({ connectionString: database });
  await older.connect();
  const verifying = verify(proxy.url(database));
  const newestTime = await proxy.holdNext(/max\(recorded_at\)/);
  // Before this statement was sent.
  const now = Date.now() - 1_000;
  await postgres.sql(database, insertSql([1, 1, 'newest', null, now, 1]));
  await newestTime.deliver();
  newestTime.respond();
  // A service sends an insert at most 3 s after the time of its revisions.
  await wait(now + 2_900 - Date.now());
  await older.query('BEGIN');
  await older.query(insertSql([2, 1, 'older', null, now - 1, 1]));
  // Its commit waits for a standby, so it takes longer than any timeout of a service.
  await wait(now + 6_000 - Date.now());
  await older.query('COMMIT');
  await older.end();
  assert.match((await verifying).stdout, / 2 plants 2 revisions /);
});

test('show tells that a revision is missing, and a backup of the damaged store gets no seal', async () => {
  const database = await storeWithRows(sqlite);
  await changeRows(sqlite, database, 'DELETE FROM plant_revision WHERE id = 9000 AND revision = 1');
  const shown = await run('show', database, '9000');
  assert.deepEqual([shown.exitCode, shown.stdout.split('\n').length], [1, 3]);
  const missing = 'plant-store: plant 9000 has a revision 2, but';
  assert.ok(shown.stderr.startsWith(`${missing} 1 revision in all; run npx plant-store verify`));

  await changeRows(sqlite, database, 'UPDATE plant_revision SET recorded_at = 999 WHERE id = 5010');
  const file = join(mkdtempSync(join(folder, 'damaged-')), 'backup.db');
  const { exitCode, stdout, stderr } = await run('backup', database, file);
  assert.equal(exitCode, 1);
  assert.match(stdout, /: 1,499 plants, 1,514 revisions and 3 tokens/);
  const damaged = 'plant-store: revision 1 of plant 5010 is damaged: its checksum is wrong';
  assert.ok(
    stderr.startsWith(`${damaged}\n${missing} no revision 1\nplant-store: the backup contains every`),
  );
  assert.deepEqual([existsSync(file), existsSync(`${file}.seal`)], [true, false]);
});
