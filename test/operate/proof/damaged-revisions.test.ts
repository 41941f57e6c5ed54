import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { STATE_AGE_MAX_MS } from '../../../src/operate/health/store-state.ts';
import { commandProcess } from '../../harness/command-lines.ts';
import { call, json, signIn } from '../../harness/console-session.ts';
import { assertFailed, type Finished, sendBody } from '../../harness/program.ts';
import { ask } from '../../harness/raw-connection.ts';
import { addToken, type RunningService, startTestService } from '../../harness/running-service.ts';
import { scrape } from '../../harness/scrape.ts';
import { readyz } from '../../harness/store-outage.ts';
import {
  type EngineUnderTest,
  openNewStore,
  pathOf,
  postgresUnderTest,
  sqliteUnderTest,
} from '../../harness/store-under-test.ts';
import { changeRows, insertSql, type Row } from '../../harness/stored-revisions.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

const ROWS: Row[] = [
  [5, 1, 'five', 'tree', 1_000, 1],
  [7, 1, 'seven one', 'x', 1_000, 1],
  [7, 2, 'seven two', 'x', 2_000, 1],
  [8, 1, 'eight', '', 3_000, 1],
  [9, 1, 'nine', null, 4_000, 1],
];
const LINES: Record<number, string> = {
  5: '5,five,tree',
  7: '7,seven two,x',
  8: '8,eight,""',
  9: '9,nine,',
};
const PAGE_BYTES = 4_096;

const sqlite = sqliteUnderTest();
// With its own checksums, the server itself would reject a damaged page.
const postgres = await postgresUnderTest({}, ['--no-data-checksums']);
const folder = testFolder();
const commands = commandProcess(folder);

async function storeWith(under: EngineUnderTest, rows = ROWS): Promise<string> {
  await using store = await openNewStore(under);
  await under.sql(store.database, insertSql(...rows));
  return store.database;
}

const change = (under: EngineUnderTest, database: string, set: string): Promise<void> =>
  changeRows(under, database, `UPDATE plant_revision SET ${set}`);

/** Changes bytes of the closed file of an SQLite store. */
function changeBytes(database: string, change: (file: Buffer<ArrayBuffer>) => void): void {
  const path = pathOf(database);
  const file = readFileSync(path);
  change(file);
  writeFileSync(path, file);
}

/** Runs commands. `copy` has its own options for the database. */
async function run(database: string, ...lines: string[]): Promise<Finished[]> {
  const finished = lines.map(command => {
    const flag = command.startsWith('copy') ? '--from' : '--database';
    return commands.run({ args: [...command.split(' '), flag, database] });
  });
  return await Promise.all(finished);
}

/** @param missing the plants that `export` and `list` do not print */
async function assertNoticed(database: string, named: string, missing: number[]): Promise<void> {
  const commands = ['export', 'list --json', 'export --revisions', 'show 7'];
  const [exported, listed, revisions, shown] = await run(database, ...commands);
  const warning = `plant-store: ${named} is damaged: its checksum is wrong\n`;
  const rest = Object.entries(LINES).filter(([id]) => !missing.includes(Number(id)));
  assert.equal(exported!.stdout, ['id,name,tag', ...rest.map(([, line]) => line), ''].join('\n'));
  assert.deepEqual(
    listed!.stdout.match(/(?<="id":)[0-9]+/g),
    rest.map(([id]) => id),
  );
  assert.equal(revisions!.stdout.split('\n').length, ROWS.length + 1, 'the header and all other rows');
  for (const { exitCode, stderr } of [exported!, listed!, revisions!]) {
    assert.ok(stderr.startsWith(warning), stderr);
    assert.equal(exitCode, 1);
  }
  const isOfSeven = !/plant [89]$/.test(named);
  assert.deepEqual([shown!.exitCode, shown!.stderr], isOfSeven ? [1, warning] : [0, '']);
  assert.equal(shown!.stdout.split('\n').length, isOfSeven ? 3 : 4);
}

const CHANGES: [set: string, named: string, missing: number[]][] = [
  [`name = 'seven twp' WHERE id = 7 AND revision = 2`, 'revision 2 of plant 7', [7]],
  [`tag = 'y' WHERE id = 7 AND revision = 2`, 'revision 2 of plant 7', [7]],
  [`tag = '' WHERE id = 9`, 'revision 1 of plant 9', [9]],
  ['tag = NULL WHERE id = 8', 'revision 1 of plant 8', [8]],
  ['revision = 3 WHERE id = 7 AND revision = 2', 'revision 3 of plant 7', [7]],
  ['recorded_at = 2001 WHERE id = 7 AND revision = 2', 'revision 2 of plant 7', [7]],
  ['recorded_by = 3 WHERE id = 7 AND revision = 2', 'revision 2 of plant 7', [7]],
  ['checksum = checksum + 1 WHERE id = 7 AND revision = 2', 'revision 2 of plant 7', [7]],
  [`name = 'seven' WHERE id = 7 AND revision = 1`, 'revision 1 of plant 7', []],
];

for (const under of [sqlite, postgres])
  suite(`a damaged revision in ${under.name}`, { concurrency: 2 }, () => {
    test('is noticed by each command, whatever column has changed', async () => {
      // One of each kind on PostgreSQL: the checksum is the same for both engines.
      const changes = under === sqlite ? CHANGES : CHANGES.filter((_, index) => index % 8 === 0);
      for (const [set, named, missing] of changes) {
        const database = await storeWith(under);
        await change(under, database, set);
        await assertNoticed(database, named, missing);
      }
    });

    test('is not copied, and a copy that has it before is not rejected', async () => {
      const database = await storeWith(under);
      const [copy, later] = [await sqlite.newDatabase(), await sqlite.newDatabase()];
      const copyTo = async (to: string): Promise<Finished> => (await run(database, `copy --to ${to}`))[0]!;
      assert.equal((await copyTo(copy)).exitCode, 0);
      // The id has moved the row to another place of the order.
      await change(under, database, 'id = 6 WHERE id = 7 AND revision = 2');
      assert.match((await copyTo(copy)).stderr, /contains revision 2 of plant 7, but the source does not/);
      await change(under, database, `id = 7, name = 'other' WHERE revision = 2`);
      const warning = '--from: revision 2 of plant 7 is damaged: its checksum is wrong';
      for (const target of [copy, later]) {
        const { exitCode, stdout, stderr } = await copyTo(target);
        assert.deepEqual([exitCode, stderr.match(/--from: .*/g)], [1, [warning]]);
        assert.match(stdout, /^target: [45] revisions .*\nnot equal\n$/m);
        assert.match(
          stderr,
          /the source has 1 damaged revision, not copied; of these plants the target has an older revision or none, .*\n$/,
        );
      }
      const [exported] = await run(later, 'export --revisions');
      assert.doesNotMatch(exported!.stdout, /other/);
      await change(sqlite, copy, `name = 'wrong' WHERE id = 5`);
      const damaged = await copyTo(copy);
      assert.equal(damaged.exitCode, 1);
      assert.match(damaged.stderr, /--to: revision 1 of plant 5 is damaged.*\n.*the target has 1 damaged/);
    });

    test('gets 503 in the service, which tells the operator until it is repaired', async () => {
      const database = await storeWith(under);
      const token = await addToken(database, 'test');
      const console = { database: 'the store', settings: [] };
      await using service = await startTestService({ database, console });
      assert.equal(await damageSeen(service), '200, 0, true, none');
      const operator = await signIn(service);
      await change(under, database, `name = 'seven twp' WHERE id = 7 AND revision = 2`);
      for (let count = 0; count < 2; count++) {
        const response = await sendBody(service.url, token, '{"id":7,"name":"seven two","tag":"x"}');
        assert.equal(response.status, 503);
        assert.equal(((await response.json()) as { error: number }).error, 50304);
      }
      const rows = join(folder, `${under.name}.csv`);
      writeFileSync(rows, 'id,name,tag\n5,five,tree\n7,seven two,x\n11,eleven,\n');
      const args = ['import', rows, '--url', service.url, '--rejects', `${rows}.rejects`];
      const imported = await commands.run({ args, env: { PLANT_STORE_TOKEN: token } });
      assert.match(imported.stdout, /1 created, 1 unchanged/);
      assert.equal(imported.exitCode, 1);
      assert.match(readFileSync(`${rows}.rejects`, 'utf8'), /^7,seven two,x,.*is damaged/m);
      const says = 'the latest revision of plant 7 is damaged';
      assert.equal(service.logged.filter(line => line.startsWith(says)).length, 1);
      assert.equal(await damageSeen(service), '200, 1, false, the store is damaged');
      await until('the log warns, since a check of the store is shared for a while', async () => {
        await readyz(service);
        return service.logged.some(line => line.startsWith('the store warns: the store is damaged'));
      });

      const { plants } = await json(operator, 'plants');
      assert.deepEqual(plants[1], { id: '7', revision: 2, isDamaged: true });
      const { revisions } = await json(operator, 'revisions?id=7');
      assert.deepEqual(revisions[1], { revision: 2, isDamaged: true });
      let csv = '';
      await assert.rejects(async () => {
        const { body } = await call(operator, 'GET', 'plants.csv');
        for await (const chunk of body!) csv += Buffer.from(chunk).toString();
      }, 'the download fails');
      assert.doesNotMatch(csv, /seven/);

      await change(under, database, `name = 'seven two' WHERE id = 7 AND revision = 2`);
      assert.equal((await sendBody(service.url, token, '{"id":7,"name":"seven two","tag":"x"}')).status, 200);
      assert.equal(await damageSeen(service), '200, 1, false, the store is damaged', 'until a verify passes');
      // The next check stores what the searches met. Without that, `verify` would not end it.
      await wait(STATE_AGE_MAX_MS);
      await readyz(service);
      assert.equal((await run(database, 'verify'))[0]!.exitCode, 0);
      await until('the warning ends', async () => (await damageSeen(service)) === '200, 0, true, none');
    });
  });

test('a damaged id in a table of PostgreSQL gets 503 at once, although the index finds the row', async () => {
  const { server } = postgres;
  const database = await server.createDatabase();
  const token = await addToken(database, 'test');
  const name = new URL(database).pathname.slice(1);
  await server.query(insertSql(...ROWS), name);
  await server.query('CHECKPOINT', name);
  const [table] = await server.query(`SELECT pg_relation_filepath('plant_revision') AS path`, name);
  await server.stop();
  const path = join(server.folder, 'data', String(table!.path));
  const file = readFileSync(path);
  // The id and the revision have 12 bytes, and the text begins with its length.
  file[file.lastIndexOf('seven two') - 13]! ^= 0x10;
  writeFileSync(path, file);
  await server.startAgain();
  await using service = await startTestService({ database });
  // With a condition, the plant is looked up before anything is inserted.
  for (const condition of [null, '0', '3']) {
    const body = '{"id":7,"name":"seven two","tag":"x"}';
    const response = await ask(service.address.port, token, {
      body,
      headers: { 'If-Plant-Revision': condition },
    });
    assert.equal(JSON.parse(response.body).error, 50304);
  }
});

test('a damaged file of an SQLite store is noticed by each command, whatever byte of a row has changed', async () => {
  for (const [offset, from, to, named] of [
    // The id, the number, and the type of the name.
    [0, 7, 0x17, 'revision 2 of plant 23'],
    [1, 2, 0, 'revision 0 of plant 7'],
    [-5, 0x1f, 0x1e, 'revision 2 of plant 7'],
  ] as const) {
    const database = await storeWith(sqlite);
    changeBytes(database, file => {
      const at = file.lastIndexOf(Buffer.from('\x07\x02seven two', 'latin1')) + offset;
      assert.equal(file[at], from);
      file[at] = to;
    });
    await assertNoticed(database, named, [7]);
  }
});

test('in a damaged file of an SQLite store, verify notices a bit of the expiry of a token', async () => {
  const database = await storeWith(sqlite);
  const expiresAt = 0x0180_0000_0123;
  await addToken(database, 'expires', expiresAt);
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(expiresAt, 0, bytes.length);
  changeBytes(database, file => {
    // In the table. The index `token_copy` has another copy, on a later page.
    const at = file.indexOf(bytes);
    assert.notEqual(at, file.lastIndexOf(bytes));
    file[at]! ^= 0x40;
  });
  const [verified] = await run(database, 'verify');
  assertFailed(
    verified!,
    /^plant-store: the pages, indexes or schema .*\n.* structure: row 1 missing from index token_copy\n/,
  );
});

test('in a damaged file of an SQLite store, list prints each other plant once, wherever damaged rows are', async () => {
  const ids = Array.from({ length: 9_000 }, (_, id) => id);
  const database = await storeWith(
    sqlite,
    ids.map((id): Row => [id, 1, `plant ${id}`, null, 1, 1]),
  );
  // `list` reads in slices of some thousand rows. Two rows in a row are damaged at the end of one.
  const isDamaged = (id: number): boolean => id % 2_048 < 2 || id % 1_000 === 0;
  await change(sqlite, database, 'recorded_by = 3 WHERE id % 2048 < 2 OR id % 1000 = 0');
  const [{ stdout, stderr } = {}] = await run(database, 'list --json');
  assert.deepEqual(
    stdout!.match(/(?<="id":)\d+/g)!.map(Number),
    ids.filter(id => !isDamaged(id)),
  );
  assert.equal(stderr!.match(/is damaged/g)!.length, ids.filter(isDamaged).length);
});

test('in a damaged file of an SQLite store, a lost page and exchanged pages end each command with a clear message', async () => {
  const many = Array.from({ length: 4_000 }, (_, id): Row => [id, 1, `plant ${id}`, 't', 1, 1]);
  const page = (file: Buffer, id: number): Buffer => {
    const start = file.indexOf(`plant ${id}t`);
    return file.subarray(start - (start % PAGE_BYTES)).subarray(0, PAGE_BYTES);
  };
  const lost = (file: Buffer): void => void page(file, 2_000).fill(0);
  const exchanged = (file: Buffer): void => {
    const before = Buffer.from(page(file, 1_000));
    const [one, two] = [page(file, 1_000), page(file, 3_000)];
    two.copy(one);
    before.copy(two);
  };
  for (const [change, says] of [
    [lost, /malformed \(SQLite result code 11\)/],
    [exchanged, /revision 1 of plant \d+ comes after/],
  ] as const) {
    const database = await storeWith(sqlite, many);
    changeBytes(database, change);
    const commands = ['export', 'list', `copy --to ${await sqlite.newDatabase()}`];
    for (const { exitCode, stderr } of await run(database, ...commands)) {
      assert.equal(exitCode, 1);
      assert.match(stderr, /^plant-store: the store is damaged: .*; restore a backup \(.*\)\n$/);
      assert.match(stderr, says);
    }
    if (change !== lost) continue;
    const token = await addToken(database, 'test');
    const console = { database: 'the store', settings: [] };
    await using service = await startTestService({ database, console });
    const operator = await signIn(service);
    let from = '1';
    let found = '';
    // A busy machine searches less in one page.
    await until('the search meets the lost page', async () => {
      found = await (await call(operator, 'GET', `plants?name=z&from=${from}`)).text();
      from = JSON.parse(found).next;
      return from === undefined;
    });
    assert.match(found, /the store is damaged, .*; run npx plant-store verify, /);
    const statuses = await Array.fromAsync([2_000, 1, 9_000], async id => {
      return (await sendBody(service.url, token, `{"id":${id},"name":"plant ${id}","tag":"t"}`)).status;
    });
    assert.deepEqual(statuses, [503, 200, 200]);
    assert.equal(await damageSeen(service), '200, 1, false, the store is damaged');
  }
});

/** What an operator sees of damaged plants: status, metric, check and warning. */
async function damageSeen({ opsUrl }: RunningService): Promise<string> {
  const response = await fetch(`${opsUrl}/readyz?verbose`);
  const body = (await response.json()) as { checks: { name: string; ok: boolean }[]; warnings?: string[] };
  const { ok } = body.checks.find(({ name }) => name === 'damage')!;
  // A rejected create of a moment ago may cause another warning.
  const warnings = body.warnings?.map(each => each.split(':')[0]!) ?? [];
  const warning = warnings.find(each => each === 'the store is damaged') ?? 'none';
  const { values } = await scrape(opsUrl);
  return [response.status, values.get('plant_store_damage_known'), ok, warning].join(', ');
}
