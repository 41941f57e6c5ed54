import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { BATCH_PLANTS_MAX } from '../../../src/core/commit/batch-size.ts';
import type { IntactRevision } from '../../../src/core/commit/plant-revision.ts';
import { StoreRejected } from '../../../src/core/commit/store-errors.ts';
import type { StoredToken } from '../../../src/core/tokens/stored-token.ts';
import { commandProcess } from '../../harness/command-lines.ts';
import {
  copiedRevisions,
  equalDigest,
  fillStore,
  HARD_PLANTS,
  manyPlants,
  rowsOf,
} from '../../harness/copied-stores.ts';
import { LoggingClient } from '../../harness/logging-client.ts';
import { openCopyTarget, openReader, openServedStore } from '../../harness/open-store.ts';
import { type HeldStatement, PLANT_INSERT, PostgresProxy } from '../../harness/postgres-proxy.ts';
import { assertFailed, type Finished, sendPlant, startCommand, startServe } from '../../harness/program.ts';
import { startTestService } from '../../harness/running-service.ts';
import { openTokens, pathOf, postgresUnderTest, sqliteUnderTest } from '../../harness/store-under-test.ts';
import { changeRows, insertSql, type Row, withChecksum } from '../../harness/stored-revisions.ts';
import { testFolder } from '../../harness/test-folder.ts';

const folder = testFolder();
const [sqlite, postgres] = [sqliteUnderTest(), await postgresUnderTest()];

const commands = commandProcess(folder);

function copy(from: string, to: string, ...more: string[]): Promise<Finished> {
  return commands.run({ args: ['copy', '--from', from, '--to', to, ...more] });
}

function assertRejected(finished: Finished, says: RegExp): void {
  assertFailed(finished, says);
  assert.match(finished.stderr, /^plant-store: [^\n]+\n$/, 'one line');
}

for (const from of [sqlite, postgres])
  test(`copy from ${from.name} is exact and proves it, and a service runs on the target`, async () => {
    const to = from === sqlite ? postgres : sqlite;
    const [source, target] = [await from.newDatabase(), await to.newDatabase()];
    const back = await from.newDatabase();
    assertFailed(
      await copy(source, target),
      /--from: .*there is no plant store .*; name an existing one with --from;/,
    );
    const tokens = await fillStore(source);
    const first = await copy(source, target);
    assert.match(first.stdout, /^copied 33 revisions and 3 tokens in /);
    assert.match(first.stdout, /^source: 33 revisions and 3 tokens, 19 plants, sha256:/m);
    const expected = await rowsOf(source);
    assert.deepEqual(await rowsOf(target), expected);
    const [valid, expired, revoked] = expected.tokens;
    assert.equal(valid!.lastUsedDay, '2026-01-01');
    assert.equal(expired!.expiresAt, 1_000_000);
    assert.equal(revoked!.revokedAt, 6_000);
    const digest = equalDigest(first);
    assert.equal(equalDigest(await copy(target, back)), digest);
    for (const database of [source, target]) {
      const verified = await commands.run({ args: ['verify', '--database', database] });
      assert.ok(verified.stdout.endsWith(`sha256:${digest}\n`), verified.stdout);
    }

    await using service = await startTestService({ database: target });
    assert.equal(await sendPlant(service.url, tokens.valid, 1n), 200);
    assert.equal(await sendPlant(service.url, tokens.expired, 1n), 401);
    assert.equal(await sendPlant(service.url, tokens.revoked, 1n), 401);
  });

test('a failure names --from instead of --database, but --database-password-file as it is', async () => {
  const missing = await copy('sqlite:missing/plants.db', await sqlite.newDatabase());
  assertFailed(
    missing,
    /^plant-store: --from: there is no plant store .*; name an existing one with --from;/,
  );
  const options = ['--database-password-file', 'missing'];
  const unreadable = await copy('postgres://me@localhost/plants', 'sqlite:x.db', ...options);
  assertFailed(unreadable, /^plant-store: --from: the file that --database-password-file or /, 2);
});

test('rejects a target with rows that the source does not have, and does not change it', async () => {
  const [source, target] = [await sqlite.newDatabase(), await postgres.newDatabase()];
  await fillStore(source, manyPlants(10));
  equalDigest(await copy(source, target));
  // Rows before, between and after those of the target, which an accepted copy would write.
  const around = [-9, 1, 88].map((id): Row => [id, 1, 'a', null, 1, 1]);
  await sqlite.sql(source, insertSql(...around));
  const assertUnchanged = async (sql: string, says: RegExp): Promise<void> => {
    await postgres.sql(target, sql);
    const before = await rowsOf(target);
    assertRejected(await copy(source, target), says);
    assert.deepEqual(await rowsOf(target), before);
  };
  for (const [change, undo, says] of [
    ['revoked_at = 5', 'revoked_at = NULL', /"valid" is revoked in the target/],
    ["label = 'mine'", "label = 'valid'", /token 1 of the target, "mine", differs/],
  ] as const) {
    await assertUnchanged(`UPDATE token SET ${change} WHERE id = 1`, says);
    await postgres.sql(target, `UPDATE token SET ${undo} WHERE id = 1`);
  }
  await assertUnchanged(insertSql([99, 1, 'x', null, 1, 1]), /plant 99, but/);
  await changeRows(postgres, target, 'DELETE FROM plant_revision WHERE id = 99');
  await sqlite.sql(source, insertSql([9_007_199_254_740_992n, 1, 'x', null, 1, 1]));
  await assertUnchanged(
    insertSql([9_007_199_254_740_993n, 1, 'x', null, 1, 1]),
    /plant 9007199254740993, but/,
  );
  await changeRows(postgres, target, 'DELETE FROM plant_revision WHERE id > 9007199254740000');
  for (const [name, tag] of [
    ['A', null],
    ['a', ''],
  ] as const) {
    await assertUnchanged(insertSql([1, 1, name, tag, 1, 1]), /revision 1 of plant 1 has other content/);
    await changeRows(postgres, target, 'DELETE FROM plant_revision WHERE id = 1');
  }
});

/** The bytes of all files of a closed SQLite store. */
function bytesOf(database: string): Buffer {
  const store = dirname(pathOf(database));
  return Buffer.concat(readdirSync(store).map(name => readFileSync(join(store, name))));
}

for (const from of [sqlite, postgres])
  test(`copy --except from ${from.name} leaves out all of these plants, and proves all others`, async () => {
    const to = from === sqlite ? postgres : sqlite;
    const [source, target] = [await from.newDatabase(), await to.newDatabase()];
    const file = join(folder, `${from.name}-ids`);
    const except = ['--except', file];
    await fillStore(source, [...HARD_PLANTS, { id: 12n, name: 'a person' }]);
    const before = await commands.run({ args: ['verify', '--database', source] });

    writeFileSync(file, '7\n\n9007199254740994\n5 # five\n');
    assertRejected(
      await copy(source, target, ...except),
      /--except: the source has no plant with the id 9007199254740994 \(line 3\), 5 \(line 4\); nothing/,
    );
    await assert.rejects(openReader(target), /does not exist|no plant store/);

    const ids = [2n ** 53n + 1n, 7n, 12n, -(2n ** 63n)];
    writeFileSync(file, `\ufeff# asked to\r\n\r\n${ids.join(' # why\r\n')}\r\n7`);
    const copied = await copy(source, target, ...except);
    equalDigest(copied);
    assert.match(
      copied.stdout,
      /^left out 4 plants with 15 revisions\nsource without these plants: 7 revisions and 3 tokens, 4 plants, sha256:/m,
    );
    const { revisions, tokens } = await rowsOf(source);
    const expected = revisions.filter(({ plant }) => !ids.includes(plant.id));
    assert.deepEqual(await rowsOf(target), { revisions: expected, tokens });
    if (to === sqlite) assert.ok(!bytesOf(target).includes('a person'));

    // The seal of the source does not fit, the new one does.
    const against = (seal: string) =>
      commands.run({ args: ['verify', '--database', target, '--against', seal] });
    assertFailed(
      await against(before.stdout.trim()),
      /the seal has 22 revisions, and the store has 7 intact/,
    );
    assert.equal(copied.stderr, 'no seal of the source fits the target; keep this one:\n');
    const lacks = /^equal\nnot in the target: these plants, and what was stored after (20\S+Z)$/m;
    assert.ok(Date.parse(lacks.exec(copied.stdout)![1]!) <= Date.now());
    const seal = copied.stdout.trimEnd().split('\n').at(-1)!;
    const verified = await against(seal);
    assert.deepEqual([verified.exitCode, verified.stdout], [0, `${seal}\n`]);

    // A second copy also leaves out new revisions of these plants.
    await from.sql(source, insertSql([7, 13, 'new', null, 5, 1], [13, 1, 'new', null, 5, 1]));
    assert.equal(copiedRevisions(await copy(source, target, ...except)), 1);
    const unchanged = await rowsOf(target);
    writeFileSync(file, '7\n13');
    assertRejected(
      await copy(source, target, ...except),
      /: the target has plant 13, which --except leaves out; .* name a new store with --to$/m,
    );
    // A damaged revision may have a wrong id.
    writeFileSync(file, ids.join('\n'));
    await changeRows(from, source, `UPDATE plant_revision SET name = 'wrong' WHERE id = 12`);
    const damaged = await copy(source, target, ...except);
    assert.equal(damaged.exitCode, 1);
    assert.deepEqual(await rowsOf(target), unchanged);
  });

test('copy --except warns of a service that uses the source, and leaves its locks alone', async () => {
  const [source, target] = [await sqlite.newDatabase(), await sqlite.newDatabase()];
  const { valid } = await fillStore(source, manyPlants(3));
  const ids = join(folder, 'beside-a-service');
  writeFileSync(ids, '3');
  const holder = process.platform === 'linux' ? String.raw` \(process \d+\)` : '.*';
  const warning = (advice: string) =>
    `WARNING: a plant-store service${holder} uses the source, and the target lacks each plant that it confirms after this copy; ${advice}\n`;
  const [early, late] = ['stop it before you copy', 'before you use the target, stop it and run .* again'];
  const except = ['--except', ids];
  {
    await using serve = await startServe(source);
    const beside = await copy(source, target, ...except);
    assert.match(beside.stderr, new RegExp(`^${warning(early)}${warning(late)}no seal `));
    equalDigest(beside);
    // The confirmed plant that a replacement of the store would lose.
    assert.equal(await sendPlant(serve.url, valid, 77n), 200);
    assert.doesNotMatch((await copy(source, await sqlite.newDatabase())).stderr, /WARNING/);
    await serve.stop('SIGKILL');
  }
  const again = await copy(source, target, ...except);
  assert.equal(copiedRevisions(again), 1);
  assert.equal(again.stderr, 'no seal of the source fits the target; keep this one:\n');
  // The next service still knows that the one before crashed.
  assert.ok(existsSync(`${pathOf(source)}-serve-lock-journal`));
});

test('a wrong address is named with its flag, and never with its password', async () => {
  const [file, database] = [await sqlite.newDatabase(), await postgres.newDatabase()];
  for (const each of [file, database]) await fillStore(each, manyPlants(10));
  const nowhere = database.replace('?', '_that_is_not_there?');
  const sameFile = file.replace(/\/(\w+)\/plants\.db$/, '/$1/../$1/plants.db');
  const same = /--from and --to name the same store; give another target with --to/;
  for (const [from, to, says] of [
    [file, sameFile, same],
    [database, database.replace('127.0.0.1', 'localhost'), same],
    [file, nowhere, /^plant-store: --to: the store at .* the database does not exist/],
    [nowhere, file, /^plant-store: --from: .* the database does not exist/],
  ] as const)
    assertRejected(await copy(from, to), says);
  const { exitCode, stderr } = await copy(file, `${database}&password=secret&colour=green`);
  assert.equal(exitCode, 2);
  assert.match(stderr, /^plant-store: --to: the postgres:\/\/ URL of the database has [^\n]*\n$/);
  assert.ok(!stderr.includes('secret'));

  await using service = await startTestService();
  const finished = await copy(file, service.database);
  assertRejected(finished, /^plant-store: --to: another plant-store service is running on .* with --to$/m);
});

/** Enough plants to interrupt a copy twice: six batches. */
const PLANTS = 6 * BATCH_PLANTS_MAX;

const REST = 'the copied rows are stored; run the same command again to copy the rest';

async function count(database: string): Promise<number> {
  await using reader = await openReader(database).catch(() => undefined);
  return (await reader?.size())?.revisions ?? 0;
}

test('an interrupted copy continues when it is run again', async () => {
  const [source, target] = [await sqlite.newDatabase(), await postgres.newDatabase()];
  await fillStore(source, manyPlants(PLANTS));
  await using proxy = await PostgresProxy.start(postgres.server.port);
  /** Starts a copy and stops it after the first rows. */
  const stopInTheMiddle = async (
    stop: (child: ChildProcess, inFlight: HeldStatement) => Promise<void>,
  ): Promise<Finished> => {
    const { child, finished } = startCommand(['copy', '--from', source, '--to', proxy.url(target)]);
    const first = await proxy.holdNext(PLANT_INSERT);
    const holding = proxy.holdNext(PLANT_INSERT);
    await first.deliver();
    first.respond();
    await stop(child, await holding);
    return await finished;
  };

  const interrupted = await stopInTheMiddle(async (child, inFlight) => {
    child.kill('SIGINT');
    // The copy stops after the statement in flight.
    await wait(1_000);
    await inFlight.deliver();
    inFlight.respond();
  });
  assert.equal(`${interrupted.exitCode} ${interrupted.stderr}`, `130 plant-store: stopped; ${REST}\n`);
  const { exitCode, stderr } = await stopInTheMiddle(() => postgres.server.kill());
  await postgres.server.startAgain();
  assert.equal(exitCode, 1);
  assert.match(stderr, new RegExp(`^plant-store: [^\n]+; ${REST}\n$`));
  assert.ok(stderr.includes('--to: '), stderr);

  const stored = await count(target);
  assert.ok(stored > 0 && stored < PLANTS, `${stored} of ${PLANTS}`);
  const last = await copy(source, target);
  assert.equal(copiedRevisions(last), PLANTS - stored);
  equalDigest(last);
  assert.deepEqual(await rowsOf(target), await rowsOf(source));
});

test('a copy works while a service writes to the source, and a second copy completes it, also the tokens', async () => {
  const [source, target] = [await sqlite.newDatabase(), await postgres.newDatabase()];
  const { valid } = await fillStore(source, manyPlants(3_000));
  const service = await startTestService({ database: source });
  let sent = 0;
  let isOver = false;
  const sending = Array.from({ length: 4 }, async () => {
    const client = new LoggingClient(service.url, valid, []);
    while (!isOver) {
      // Ids between, after and equal to those of the stored plants.
      const { response } = await client.send({ id: BigInt(sent++ * 7), name: `sent ${sent}` });
      assert.equal(response?.status, 200);
    }
    await client.close();
  });
  const first = await copy(source, target);
  isOver = true;
  await Promise.all(sending);
  await service[Symbol.asyncDispose]();
  assert.equal(first.exitCode, 1, first.stdout);
  assert.match(first.stdout, /^not equal$/m);
  assert.match(
    first.stderr,
    /^plant-store: the source has [1-9][0-9,]* revisions? .* that were stored after the copy; stop the service that uses the source, then run the same command again to copy the rest\n$/,
  );
  {
    await using tokens = await openTokens(source);
    await tokens.tokenTable.revokeToken('valid', Date.now());
  }
  const last = await copy(source, target);
  equalDigest(last);
  assert.ok(copiedRevisions(last) > 0);
  assert.match(last.stdout, /^copied .* revisions? and 1 token in /);
  assert.equal(copiedRevisions(first) + copiedRevisions(last), await count(source), 'each was copied once');
  assert.deepEqual(await rowsOf(target), await rowsOf(source));
});

function revision(id: bigint, number = 1, name = `plant ${id}`): IntactRevision {
  return withChecksum({ plant: { id, name }, revision: number, recordedAt: 5, recordedBy: 1 });
}

const TOKEN: StoredToken = {
  id: 7,
  hash: 'a'.repeat(64),
  label: 'seven',
  createdAt: 1,
  expiresAt: 2,
  revokedAt: null,
  lastUsedDay: null,
  changeNumber: 99,
};

for (const engine of [sqlite, postgres])
  test(`a target on ${engine.name} stores all rows of a batch or none, and overwrites nothing`, async () => {
    const database = await engine.newDatabase();
    const begun = await openCopyTarget(database);
    const first = [revision(1n), revision(1n, 2, 'again'), revision(3n)];
    await begun.insertRevisions(first);
    for (const other of [revision(3n, 1, 'other'), { ...revision(3n), recordedBy: 2 }])
      await assert.rejects(begun.insertRevisions([revision(3n, 2), other]), StoreRejected);
    assert.deepEqual((await rowsOf(database)).revisions, first);
    if (engine === sqlite) {
      const settings = { database, repeatedIdRule: 'revise', connections: 1 } as const;
      await assert.rejects(openServedStore(settings), /another plant-store service is running/);
    }
    await begun[Symbol.asyncDispose]();
    {
      await using service = await startTestService({ database });
      assert.deepEqual([service.firstToken, service.hasToken], [undefined, false], 'an incomplete copy');
    }

    // A token gets its state in the source, but no revocation is undone.
    const other = { ...TOKEN, id: 8, hash: 'b'.repeat(64), label: 'eight' };
    const used = { ...TOKEN, lastUsedDay: '2026-01-01' };
    const revoked = { ...used, revokedAt: 3, expiresAt: null };
    await using target = await openCopyTarget(database);
    for (const tokens of [[TOKEN, other], [used], [revoked]]) await target.putTokens(tokens);
    await using reader = await openReader(database);
    const before = await reader.tokens();
    // The change number tells running services that a token has changed since `other`.
    assert.partialDeepStrictEqual(before, [
      { ...revoked, changeNumber: 3 },
      { ...other, changeNumber: 2 },
    ]);
    for (const unchanged of [TOKEN, used, { ...revoked, hash: 'c'.repeat(64) }]) {
      await target.putTokens([unchanged]);
      assert.deepEqual(await reader.tokens(), before);
    }
    const fresh = { ...TOKEN, id: 9, hash: 'd'.repeat(64), label: 'nine' };
    for (const rejected of [
      { ...revoked, id: 10 },
      { ...fresh, id: 10, label: 'seven' },
    ]) {
      await assert.rejects(target.putTokens([fresh, rejected]), { name: /^Store(Rejected|Unavailable)$/ });
      assert.deepEqual(await reader.tokens(), before);
    }
  });
