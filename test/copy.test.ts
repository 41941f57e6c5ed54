import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { suite, test } from 'node:test';
import { openCopyTarget, openServedStore } from '../src/store/open-store.ts';
import {
  contentOf,
  copiedRevisions,
  copy,
  equalDigest,
  fillStore,
  manyPlants,
  revokeToken,
  rowsOf,
} from './copied-stores.ts';
import { type Finished, startServe } from './harness/program.ts';
import { until } from './harness/until.ts';
import { startTestService } from './running-service.ts';
import { type EngineUnderTest, enginesUnderTest } from './store-under-test.ts';

const [sqlite, postgres] = await enginesUnderTest();
const PAIRS: [EngineUnderTest, EngineUnderTest][] = [
  [sqlite, postgres],
  [postgres, sqlite],
  [sqlite, sqlite],
  [postgres, postgres],
];
const ENGINES = [sqlite, postgres];

function assertFailed({ exitCode, stdout, stderr }: Finished, says: RegExp): void {
  assert.equal(exitCode, 1, stdout + stderr);
  assert.match(stderr, says);
  assert.match(stderr, /^plant-store: [^\n]+\n$/, 'one line');
  assert.ok(!stderr.includes('secret'), 'no password');
}

async function post(url: string, token: string, id = 1n): Promise<number> {
  const answer = await fetch(`${url}/plants`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: `{"id": ${id}, "name": "sent"}`,
  });
  await answer.text();
  return answer.status;
}

for (const [from, to] of PAIRS) {
  suite(`copy from ${from.name} to ${to.name}`, () => {
    test('takes every revision and token along as it is, and proves it', async () => {
      const [source, target, back] = [
        await from.newDatabase(),
        await to.newDatabase(),
        await from.newDatabase(),
      ];
      await fillStore(source);
      const first = await copy(source, target);
      assert.match(first.stdout, /^copied 33 revisions and 3 tokens in /);
      assert.match(first.stdout, /^source: 33 revisions and 3 tokens, 19 plants, SHA-256 /m);
      const [expected, copied] = [await rowsOf(source), await rowsOf(target)];
      assert.deepEqual(copied, expected);
      const [inForce, expired, revoked] = expected.tokens;
      assert.equal(inForce!.lastUsedDay, '2026-01-01');
      assert.equal(expired!.expiresAt, 1_000_000);
      assert.equal(revoked!.revokedAt, 6_000);
      assert.equal(await contentOf(target), await contentOf(source));
      assert.equal(equalDigest(await copy(target, back)), equalDigest(first));
    });

    test('goes on with what is missing when it is run again', async () => {
      const [source, target] = [await from.newDatabase(), await to.newDatabase()];
      await fillStore(source, manyPlants(3_000));
      assert.equal(copiedRevisions(await copy(source, target)), 3_000);
      await from.sql(
        source,
        `INSERT INTO plant_revision VALUES (1, 1, 'between', NULL, 5, 1), (3, 2, 'again', '', 6, 2)`,
      );
      await revokeToken(source, 'inForce');
      const second = await copy(source, target);
      assert.match(second.stdout, /^copied 2 revisions and 1 token in /);
      equalDigest(second);
      const third = await copy(source, target);
      assert.match(third.stdout, /^copied 0 revisions and 0 tokens in /);
      assert.equal(equalDigest(third), equalDigest(second));
      assert.equal(await contentOf(target), await contentOf(source));
    });

    test('leaves a store to be served: its tokens are accepted as before, its ids and labels go on', async () => {
      const [source, target] = [await from.newDatabase(), await to.newDatabase()];
      const tokens = await fillStore(source);
      equalDigest(await copy(source, target));
      const serve = await startServe(target);
      try {
        assert.equal(await post(serve.url, tokens.inForce), 200);
        assert.equal(await post(serve.url, tokens.expired), 401);
        assert.equal(await post(serve.url, tokens.revoked), 401);
      } finally {
        assert.equal((await serve.stop('SIGTERM')).exitCode, 0);
      }
    });
  });
}

/** What a target may hold that its source does not, as SQL, and what is said of it. */
const FOREIGN: [what: string, sql: string, says: RegExp][] = [
  [
    'another plant',
    `INSERT INTO plant_revision VALUES (-8, 1, 'x', NULL, 1, 1)`,
    /revision 1 of plant -8, which/,
  ],
  ['a plant behind all', `INSERT INTO plant_revision VALUES (99, 1, 'x', NULL, 1, 1)`, /plant 99, which/],
  [
    'another revision',
    `INSERT INTO plant_revision VALUES (3, 2, 'x', NULL, 1, 1)`,
    /revision 2 of plant 3, which/,
  ],
  [
    'a plant with other content',
    `INSERT INTO plant_revision VALUES (1, 1, 'x', '', 1, 1)`,
    /plant 1 otherwise/,
  ],
  [
    'another token',
    `INSERT INTO token (id, hash, label, created_at, change_number) VALUES (9, 'h', 'mine', 1, 9)`,
    /the token "mine", which the source does not/,
  ],
  [
    'a token with another hash',
    `UPDATE token SET hash = 'h' WHERE id = 1`,
    /token 1 of the target, "inForce"/,
  ],
  [
    'a token with another label',
    `UPDATE token SET label = 'mine' WHERE id = 1`,
    /token 1 of the target, "mine"/,
  ],
  [
    'a token with the label of another one',
    `UPDATE token SET id = 9 WHERE label = 'inForce'`,
    /the token "inForce", which the source does not/,
  ],
  [
    'a token revoked there alone',
    'UPDATE token SET revoked_at = 5 WHERE id = 1',
    /"inForce" is revoked in the target/,
  ],
];

for (const engine of ENGINES) {
  suite(`a target on ${engine.name}`, () => {
    for (const [what, sql, says] of FOREIGN) {
      test(`is refused for ${what}, and left as it is`, async () => {
        const [source, target] = [await sqlite.newDatabase(), await engine.newDatabase()];
        await fillStore(source, manyPlants(10));
        equalDigest(await copy(source, target));
        // Before, between and behind what the target has: what would be copied if it was not refused.
        const more = `INSERT INTO plant_revision VALUES (-9, 1, 'a', NULL, 1, 1), (1, 1, 'b', NULL, 1, 1), (88, 1, 'c', NULL, 1, 1)`;
        await sqlite.sql(source, more);
        await engine.sql(target, sql);
        const before = await rowsOf(target);
        assertFailed(await copy(source, target, '--dry-run'), says);
        assertFailed(await copy(source, target), says);
        assert.deepEqual(await rowsOf(target), before);
      });
    }

    test('is not made by a dry run, nor for a source that is missing', async () => {
      const [source, target] = [await sqlite.newDatabase(), await engine.newDatabase()];
      for (const missing of [await sqlite.newDatabase(), await postgres.newDatabase()]) {
        assertFailed(await copy(missing, target), /--from: .*there is no plant store .* serve` makes one/);
        assertFailed(await copy(missing, target, '--dry-run'), /--from: .*there is no plant store/);
      }
      await fillStore(source, manyPlants(10));
      const { exitCode, stdout } = await copy(source, target, '--dry-run');
      assert.equal(exitCode, 0);
      assert.equal(stdout, 'would copy 10 revisions and 3 tokens to a new store; nothing was written\n');
      if (engine === sqlite) assert.deepEqual(readdirSync(dirname(target.replace('sqlite:', ''))), []);
      else
        assert.deepEqual(await engine.sql(target, `SELECT * FROM pg_tables WHERE schemaname = 'public'`), []);
    });

    test('is left as it is by a dry run, which tells what is missing', async () => {
      const [source, target] = [await sqlite.newDatabase(), await engine.newDatabase()];
      await fillStore(source, manyPlants(10));
      equalDigest(await copy(source, target));
      await sqlite.sql(source, `INSERT INTO plant_revision VALUES (1, 1, 'between', NULL, 5, 1)`);
      await revokeToken(source, 'inForce');
      const before = await rowsOf(target);
      const { exitCode, stdout } = await copy(source, target, '--dry-run');
      assert.equal(exitCode, 0);
      assert.equal(stdout, 'would copy 1 revision and 1 token; nothing was written\n');
      assert.deepEqual(await rowsOf(target), before);
    });
  });
}

test('one store on both sides is refused, by whichever address', async () => {
  const file = await sqlite.newDatabase();
  await fillStore(file, manyPlants(10));
  const other = file.replace(/\/(\w+)\/plants\.db$/, '/$1/../$1/plants.db');
  assert.ok(existsSync(other.replace('sqlite:', '')));
  for (const to of [file, other]) {
    for (const args of [[], ['--dry-run']]) {
      assertFailed(
        await copy(file, to, ...args),
        /--from and --to name the same store; name another one with --to/,
      );
    }
  }
  const database = await postgres.newDatabase();
  await fillStore(database, manyPlants(10));
  assertFailed(await copy(database, database.replace('127.0.0.1', 'localhost')), /name the same store/);
});

test('what can be said of an address names its flag, and never its password', async () => {
  const [source, target] = [await sqlite.newDatabase(), await postgres.newDatabase()];
  await fillStore(source, manyPlants(10));
  const nowhere = `${target}_that_is_not_there`;
  assertFailed(await copy(source, nowhere), /^plant-store: --to: the store at .* there is no such database/);
  assertFailed(
    await copy(nowhere, source),
    /^plant-store: --from: the store at .* there is no such database/,
  );
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

test('a service on a PostgreSQL target hears of a revocation that is copied', async () => {
  const [source, target] = [await sqlite.newDatabase(), await postgres.newDatabase()];
  const tokens = await fillStore(source, manyPlants(1));
  equalDigest(await copy(source, target));
  await using service = await startTestService({ database: target });
  assert.equal(await post(service.url, tokens.inForce, 0n), 200);
  // The service notes the use within a second: between copy and comparison that would make them differ.
  await until('the use is noted', async () => {
    const [token] = await postgres.sql(target, `SELECT last_used_day FROM token WHERE label = 'inForce'`);
    return token!.last_used_day !== '2026-01-01';
  });
  // Only to be refused by then: the plant that was sent is one that the source does not have.
  await postgres.sql(target, 'DELETE FROM plant_revision WHERE revision > 1');
  await revokeToken(source, 'inForce');
  equalDigest(await copy(source, target));
  await until('the token is refused', async () => (await post(service.url, tokens.inForce, 0n)) === 401);
});
