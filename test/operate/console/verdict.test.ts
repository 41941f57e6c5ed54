import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { FAULTS_FOUND } from '../../../src/operate/health/known-damage.ts';
import { startBrowser } from '../../harness/browser.ts';
import { commandProcess } from '../../harness/command-lines.ts';
import { sendText } from '../../harness/console-session.ts';
import { openReader } from '../../harness/open-store.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { scrape } from '../../harness/scrape.ts';
import { readyz } from '../../harness/store-outage.ts';
import { enginesUnderTest, openNewStore, openTokens } from '../../harness/store-under-test.ts';
import { changeRows, insertSql, type Row } from '../../harness/stored-revisions.ts';
import { until } from '../../harness/until.ts';

const engines = await enginesUnderTest();
const commands = commandProcess();
const browser = await startBrowser();
after(() => browser[Symbol.asyncDispose]());

const CONSOLE = { database: 'the store', settings: [] };

/** Whether each of the four places warns of damage: `/readyz`, `health`, the metric, the banner. */
async function warnings(service: RunningService, page: Page): Promise<boolean[]> {
  const { port } = service.opsAddress;
  const health = await commands.run({ args: ['health'], env: { PLANT_STORE_OPS: String(port) } });
  return [
    /the store is damaged/.test(String((await readyz(service)).warnings)),
    /^the service is ready; WARNING: the store is damaged.* npx plant-store verify,/.test(health.stdout),
    (await scrape(service.opsUrl)).values.get('plant_store_damage_known') === 1,
    /^The store is damaged.*Run npx plant-store verify,/s.test(
      String(await page.locator('#banner').textContent()),
    ),
  ];
}

for (const engine of engines)
  test(`a failed verify on ${engine.name} warns everywhere, also after a restart, until one passes`, async () => {
    const database = await engine.newDatabase();
    const verify = () => commands.run({ args: ['verify', '--database', database] });
    const all = async (service: RunningService, isWarned: boolean): Promise<void> => {
      // Nobody is signed in.
      const { page } = await browser.openPage({});
      await page.goto(`${service.opsUrl}/console/`);
      await until(`all four ${isWarned ? 'warn' : 'are silent'}`, async () => {
        return (await warnings(service, page)).every(each => each === isWarned);
      });
      await page.close();
    };
    {
      await using service = await startTestService({ database, console: CONSOLE });
      assert.equal(await sendText(service, '{"id":1,"name":"oak"}'), 200);
      await all(service, false);
      await changeRows(engine, database, `UPDATE plant_revision SET name = 'oat'`);
      const { exitCode, stderr } = await verify();
      assert.deepEqual([exitCode, stderr.includes(FAULTS_FOUND)], [1, true]);
      await all(service, true);
    }
    await using again = await startTestService({ database, console: CONSOLE });
    assert.match(again.warnings[0]!.fault, /^the store is damaged/);
    await all(again, true);
    await changeRows(engine, database, `UPDATE plant_revision SET name = 'oak'`);
    assert.equal((await verify()).exitCode, 0);
    await all(again, false);
  });

for (const engine of engines)
  test(`damage on ${engine.name} that is met while verify runs stays known, whatever the clocks say`, async () => {
    await using store = await openNewStore(engine);
    const damage = (foundAt: number, foundBy = 'a create') => ({ foundAt, foundBy });
    const verified = {
      command: 'verify',
      endedAt: 2 ** 45,
      hasSucceeded: true,
      result: 'no fault found',
    } as const;
    await store.operatorTables.recordRun(verified);
    await store.operatorTables.recordDamage(damage(2));
    for (const later of [damage(3), damage(1), damage(2, 'a search')]) {
      await store.operatorTables.recordDamage(later);
      await store.operatorTables.forgetDamage(damage(2));
      assert.deepEqual(await store.operatorTables.knownDamage(), later);
    }
    await using reader = await openReader(store.database);
    assert.deepEqual(await reader.knownDamage(), damage(2, 'a search'));
    await store.operatorTables.forgetDamage(damage(2, 'a search'));
    assert.equal(await store.operatorTables.knownDamage(), undefined);
    assert.deepEqual(await store.operatorTables.lastRuns(), [verified]);
    const failed = { ...verified, endedAt: 1, hasSucceeded: false, result: 'plant 1 is damaged' };
    await store.operatorTables.recordRun(failed);
    assert.deepEqual(await store.operatorTables.lastRuns(), [failed]);
  });

test('many rejected requests are a warning until they stop', async () => {
  await using service = await startTestService({ console: CONSOLE });
  const { page } = await browser.openPage({});
  await page.goto(`${service.opsUrl}/console/`);
  const shows = async (text: RegExp): Promise<boolean> =>
    text.test(String(await page.locator('#banner').textContent()));
  await until('the banner warns', async () => {
    await Promise.all(Array.from({ length: 10 }, () => sendText(service, '{"id":1}')));
    return await shows(
      /^About [1-9][0-9]* requests per second are rejected, most often with the error 40002 \("the body is not a NewPlant; [^"]+"\), and few plants are stored\.Find the senders on the screen Rejected/,
    );
  });
  await until('all is well again', () => shows(/^Plants can be stored, and all checks pass/));
});

/** Whether the verdict of a service begins with a text. */
async function says(service: RunningService, text: string): Promise<boolean> {
  const { verdict } = (await readyz(service)) as unknown as { verdict: { sentence: string } };
  return verdict.sentence.startsWith(text);
}

test('a store without a recent backup is a warning, with which the service is ready', async () => {
  await using service = await startTestService();
  const DAY_MS = 86_400_000;
  const [sqlite] = engines;
  await using command = await openTokens(service.database);
  const { operatorTables } = command;
  const isSaid = (text: string) => until(text, () => says(service, text));
  const backup = (days: number, hasSucceeded = true) =>
    operatorTables.recordRun({
      command: 'backup',
      endedAt: Date.now() - days * DAY_MS,
      hasSucceeded,
      result: 'x',
    });
  await isSaid('plants can be stored, and all checks pass');
  const row: Row = [1, 1, 'oak', null, Date.now() - 3 * DAY_MS, 1];
  await sqlite.sql(service.database, insertSql(row));
  await isSaid('the store has had plants for 3 days, but no backup');
  assert.equal((await fetch(`${service.opsUrl}/readyz`)).status, 200);
  await backup(6);
  await isSaid('plants can be stored, and all checks pass');
  await backup(23);
  await isSaid('the last backup of the store is 23 days old');
  await backup(0, false);
  await isSaid('the last backup of the store found a fault');
});

test('a full disk of PostgreSQL is named', async () => {
  const [, postgres] = engines;
  const database = await postgres.newDatabase();
  await using service = await startTestService({ database });
  const body = `BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END`;
  await postgres.sql(database, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ ${body} $$`);
  const when = 'BEFORE INSERT ON plant_revision FOR EACH STATEMENT';
  await postgres.sql(database, `CREATE TRIGGER fail ${when} EXECUTE FUNCTION fail()`);
  await until('the disk is full', async () => {
    await sendText(service, '{"id":1,"name":"oak"}');
    return await says(
      service,
      'commits fail, and plants get 503 responses: the disk of the database server is full',
    );
  });
});

test('slow commits are named', async () => {
  await using service = await startTestService();
  const path = service.database.replace('sqlite:', '');
  // The service may write at that moment, for example the day of the last use of a token.
  using other = new DatabaseSync(path, { timeout: 5_000 });
  let id = 0;
  await until('commits are slow', async () => {
    other.exec('BEGIN IMMEDIATE');
    const created = sendText(service, `{"id":${++id},"name":"oak"}`);
    await setTimeout(600);
    other.exec('ROLLBACK');
    // On a busy machine the lock can last longer than the timeout of a commit.
    if ((await created) !== 200) return false;
    return await says(service, 'commits are slow, and plants wait for them');
  });
});
