import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import { openReader } from '../../src/store/open-store.ts';
import { StoreRejected } from '../../src/store/plant-store.ts';
import {
  type EngineUnderTest,
  enginesUnderTest,
  openNewStore,
  openStore,
  openTokens,
} from '../harness/store-under-test.ts';

/** Takes codes as `openTokenStore` does in another process, and prints which ones it got. */
const TAKE = `
  import { openTokenStore } from '${new URL('../../src/store/open-store.ts', import.meta.url)}';
  const [database, count] = process.argv.slice(1);
  const store = await openTokenStore(database);
  const taken = [];
  for (let code = 0; code < count; code++) if (await store.takeConsoleCode('code ' + code, 1)) taken.push(code);
  await store.close();
  console.log(JSON.stringify(taken));`;

for (const engine of await enginesUnderTest()) {
  suite(`the codes of the console in ${engine.name}`, { concurrency: 4 }, () => testCodes(engine));
}

function testCodes(under: EngineUnderTest): void {
  const hashesIn = async (database: string): Promise<unknown[]> =>
    (await under.sql(database, 'SELECT hash FROM console_code ORDER BY hash')).map(({ hash }) => hash);

  test('are valid once, until they expire, and expired ones are deleted', async () => {
    await using service = await openNewStore(under);
    await using command = await openTokens(service.database);
    const soon = Date.now() + 60_000;
    const cases: [hash: string, expiresAt: number, now: number, isValid: boolean][] = [
      ['later', 2 ** 53 - 1, soon, true],
      ['in the last millisecond', soon, soon - 1, true],
      ['at its end', soon, soon, false],
      ['expired', soon, 2 ** 53 - 1, false],
    ];
    for (const [hash, expiresAt, now, isValid] of cases) {
      await command.createConsoleCode(hash, expiresAt);
      assert.deepEqual(await hashesIn(service.database), [hash]);
      assert.equal(await service.takeConsoleCode('another', now), false);
      assert.equal(await service.takeConsoleCode(hash, now), isValid, hash);
      assert.deepEqual(await hashesIn(service.database), []);
      assert.equal(await command.takeConsoleCode(hash, now), false);
    }
    for (const expiresAt of [1, soon, Date.now() - 1, soon + 1])
      await command.createConsoleCode(`until ${expiresAt}`, expiresAt);
    assert.deepEqual(await hashesIn(service.database), [`until ${soon}`, `until ${soon + 1}`]);
  });

  test('are taken by exactly one of the connections and processes that race for them', async () => {
    await using service = await openNewStore(under);
    const all = Array.from({ length: 40 }, (_, code) => code);
    for (const code of all) await service.createConsoleCode(`code ${code}`, 2 ** 53 - 1);
    const processes = Array.from({ length: 2 }, async () => {
      const args = ['-e', TAKE, service.database, String(all.length)];
      return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout) as number[];
    });
    await using other = await openTokens(service.database);
    const takenHere = async (): Promise<number[]> => {
      const taken: number[] = [];
      for (const code of all) {
        const [here, there] = await Promise.all(
          [service, other].map(engine => engine.takeConsoleCode(`code ${code}`, 1)),
        );
        if (here || there) taken.push(code);
        assert.ok(!(here && there));
        await new Promise(resolve => setTimeout(resolve, 15));
      }
      return taken;
    };
    const taken = (await Promise.all([takenHere(), ...processes])).flat();
    assert.deepEqual(
      taken.sort((a, b) => a - b),
      all,
    );
  });

  test('get their table in a store of schema step 1, whose plants stay', async () => {
    const database = await under.newDatabase();
    const engine = under.name === 'SQLite' ? 'sqlite' : 'postgres';
    const step = new URL(`../../src/store/${engine}/schema/001-plants-and-tokens.sql`, import.meta.url);
    const sql = `${await readFile(step, 'utf8')};
      INSERT INTO plant_revision VALUES (-9223372036854775808, 1, 'oak', NULL, 5, 1);`;
    if (engine === 'postgres') {
      await under.sql(
        database,
        `CREATE TABLE schema_step (step integer NOT NULL PRIMARY KEY); INSERT INTO schema_step VALUES (1); ${sql}`,
      );
    } else {
      using client = new DatabaseSync(database.replace('sqlite:', ''));
      client.exec(`${sql}; PRAGMA user_version = 1; PRAGMA application_id = ${0x504c4e54}`);
    }
    await assert.rejects(
      openReader(database),
      (error: Error) =>
        error instanceof StoreRejected && /schema step 1 .*start the service once/.test(error.message),
    );
    // Two instances may start at the same time.
    const starts = under.name === 'SQLite' ? 1 : 3;
    const services = await Promise.all(Array.from({ length: starts }, () => openStore(database)));
    await services[0]!.createConsoleCode('code', 2);
    assert.equal(await services.at(-1)!.takeConsoleCode('code', 1), true);
    for (const service of services) await service[Symbol.asyncDispose]();
    await using reader = await openReader(database);
    assert.deepEqual(await Array.fromAsync(reader.revisions()), [
      { plant: { id: -(2n ** 63n), name: 'oak' }, revision: 1, recordedAt: 5, recordedBy: 1 },
    ]);
  });
}
