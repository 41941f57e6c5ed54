import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { suite, test } from 'node:test';
import { openCopyTarget, openServedStore } from '../src/store/open-store.ts';
import {
  copiedRevisions,
  copy,
  equalDigest,
  fillStore,
  manyPlants,
  revokeToken,
  rowsOf,
} from './copied-stores.ts';
import type { Finished } from './harness/program.ts';
import { startTestService } from './running-service.ts';
import { type EngineUnderTest, enginesUnderTest } from './store-under-test.ts';

const [sqlite, postgres] = await enginesUnderTest();
const PAIRS: [from: EngineUnderTest, to: EngineUnderTest][] = [
  [sqlite, postgres],
  [postgres, sqlite],
];

function assertFailed({ exitCode, stdout, stderr }: Finished, says: RegExp): void {
  assert.equal(exitCode, 1, stdout + stderr);
  assert.match(stderr, says);
  assert.match(stderr, /^plant-store: [^\n]+\n$/, 'one line');
}

async function post(url: string, token: string): Promise<number> {
  const answer = await fetch(`${url}/plants`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: '{"id": 1, "name": "sent"}',
  });
  await answer.text();
  return answer.status;
}

for (const [from, to] of PAIRS) {
  suite(`copy from ${from.name} to ${to.name}`, () => {
    test('takes every revision and token along as it is, proves it, and leaves a store to be served', async () => {
      const [source, target] = [await from.newDatabase(), await to.newDatabase()];
      const back = await from.newDatabase();
      const tokens = await fillStore(source);
      const first = await copy(source, target);
      assert.match(first.stdout, /^copied 33 revisions and 3 tokens in /);
      assert.match(first.stdout, /^source: 33 revisions and 3 tokens, 19 plants, SHA-256 /m);
      const expected = await rowsOf(source);
      assert.deepEqual(await rowsOf(target), expected);
      const [inForce, expired, revoked] = expected.tokens;
      assert.equal(inForce!.lastUsedDay, '2026-01-01');
      assert.equal(expired!.expiresAt, 1_000_000);
      assert.equal(revoked!.revokedAt, 6_000);
      assert.equal(equalDigest(await copy(target, back)), equalDigest(first));

      await using service = await startTestService({ database: target });
      assert.equal(await post(service.url, tokens.inForce), 200);
      assert.equal(await post(service.url, tokens.expired), 401);
      assert.equal(await post(service.url, tokens.revoked), 401);
    });

    test('goes on with what is missing when it is run again, and says before what that is', async () => {
      const [source, target] = [await from.newDatabase(), await to.newDatabase()];
      await fillStore(source, manyPlants(3_000));
      assert.equal(copiedRevisions(await copy(source, target)), 3_000);
      await from.sql(
        source,
        `INSERT INTO plant_revision VALUES (1, 1, 'between', NULL, 5, 1), (3, 2, 'again', '', 6, 2)`,
      );
      await revokeToken(source, 'inForce');
      const before = await rowsOf(target);
      const { stdout } = await copy(source, target, '--dry-run');
      assert.equal(stdout, 'would copy 2 revisions and 1 token; nothing was written\n');
      assert.deepEqual(await rowsOf(target), before);
      const second = await copy(source, target);
      assert.match(second.stdout, /^copied 2 revisions and 1 token in /);
      equalDigest(second);
      assert.deepEqual(await rowsOf(target), await rowsOf(source));
    });

    test('makes no target in a dry run, nor for a source that is missing', async () => {
      const [source, target] = [await from.newDatabase(), await to.newDatabase()];
      assertFailed(await copy(source, target), /--from: .*there is no plant store .* serve` makes one/);
      await fillStore(source, manyPlants(10));
      const { stdout } = await copy(source, target, '--dry-run');
      assert.equal(stdout, 'would copy 10 revisions and 3 tokens to a new store; nothing was written\n');
      if (to === sqlite) assert.deepEqual(readdirSync(dirname(target.replace('sqlite:', ''))), []);
      else assert.deepEqual(await to.sql(target, `SELECT * FROM pg_tables WHERE schemaname = 'public'`), []);
    });

    test('leaves a target alone that holds what its source does not', async () => {
      const [source, target] = [await from.newDatabase(), await to.newDatabase()];
      await fillStore(source, manyPlants(10));
      equalDigest(await copy(source, target));
      // Before, between and after the rows of the target: what would be copied if it was not rejected.
      await from.sql(
        source,
        `INSERT INTO plant_revision VALUES (-9, 1, 'a', NULL, 1, 1), (1, 1, 'b', NULL, 1, 1), (88, 1, 'c', NULL, 1, 1)`,
      );
      const assertRejected = async (sql: string, says: RegExp): Promise<void> => {
        await to.sql(target, sql);
        const before = await rowsOf(target);
        assertFailed(await copy(source, target, '--dry-run'), says);
        assertFailed(await copy(source, target), says);
        assert.deepEqual(await rowsOf(target), before);
      };
      await assertRejected(
        'UPDATE token SET revoked_at = 5 WHERE id = 1',
        /"inForce" is revoked in the target/,
      );
      await to.sql(target, 'UPDATE token SET revoked_at = NULL WHERE id = 1');
      await assertRejected(`INSERT INTO plant_revision VALUES (99, 1, 'x', NULL, 1, 1)`, /plant 99, which/);
    });
  });
}

test('one store on both sides is rejected, by whichever address', async () => {
  const file = await sqlite.newDatabase();
  await fillStore(file, manyPlants(10));
  const says = /--from and --to name the same store; name another one with --to/;
  assertFailed(await copy(file, file.replace(/\/(\w+)\/plants\.db$/, '/$1/../$1/plants.db')), says);
  const database = await postgres.newDatabase();
  await fillStore(database, manyPlants(10));
  assertFailed(await copy(database, database.replace('127.0.0.1', 'localhost'), '--dry-run'), says);
});

test('what can be said of an address names its flag, and never its password', async () => {
  const [source, target] = [await sqlite.newDatabase(), await postgres.newDatabase()];
  await fillStore(source, manyPlants(10));
  const nowhere = `${target}_that_is_not_there`;
  assertFailed(await copy(source, nowhere), /^plant-store: --to: the store at .* there is no such database/);
  assertFailed(await copy(nowhere, source), /^plant-store: --from: .* there is no such database/);
  const { exitCode, stderr } = await copy(source, `${target}?password=secret&colour=green`);
  assert.equal(exitCode, 2);
  assert.match(stderr, /^plant-store: --to: the postgres:\/\/ address of the store has [^\n]*\n$/);
  assert.ok(!stderr.includes('secret'));
});

test('a SQLite store that is served is no target, and one that is copied to is not served', async () => {
  const source = await sqlite.newDatabase();
  await fillStore(source, manyPlants(10));
  await using service = await startTestService();
  for (const args of [[], ['--dry-run']]) {
    const finished = await copy(source, service.database, ...args);
    assertFailed(finished, /^plant-store: --to: another plant-store service is running on .* with --to$/m);
  }
  const database = await sqlite.newDatabase();
  const target = await openCopyTarget(database);
  const settings = { database, repeatedIdRule: 'revise', connections: 1 } as const;
  await assert.rejects(openServedStore(settings), /another plant-store service is running/);
  await target.close();
  await (await openServedStore(settings)).close();
});
