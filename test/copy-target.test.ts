import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { StoredToken } from '../src/contract/stored-token.ts';
import { openCopyTarget } from '../src/store/open-store.ts';
import {
  type CopyTarget,
  type PlantReader,
  type PlantRevision,
  StoreRefused,
} from '../src/store/plant-store.ts';
import { rowsOf } from './copied-stores.ts';
import { startTestService } from './running-service.ts';
import { enginesUnderTest, openForReading } from './store-under-test.ts';

function revision(id: bigint, number = 1, name = `plant ${id}`): PlantRevision {
  return { plant: { id, name }, revision: number, recordedAt: 5, recordedBy: 1 };
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

/** The store, to be written; `await using` closes it. */
async function openTarget(database: string): Promise<CopyTarget & AsyncDisposable> {
  const target = await openCopyTarget(database);
  return Object.assign(target, { [Symbol.asyncDispose]: () => target.close() });
}

const [sqlite, postgres] = await enginesUnderTest();

async function tokensOf(reader: PlantReader): Promise<StoredToken[]> {
  // SQLite's rows have no prototype, which is a difference to deepEqual.
  return (await reader.tokens()).map(token => ({ ...token }));
}

for (const engine of [sqlite, postgres]) {
  suite(`a target on ${engine.name}`, () => {
    test('takes a batch as a whole or not at all, and writes nothing over', async () => {
      const database = await engine.newDatabase();
      await using target = await openTarget(database);
      const first = [revision(1n), revision(1n, 2, 'again'), revision(3n)];
      await target.insertRevisions(first);
      for (const other of [
        revision(3n, 1, 'other'),
        { ...revision(3n), recordedBy: 2 },
        { ...revision(3n), plant: { id: 3n, name: 'plant 3', tag: '' } },
      ]) {
        await assert.rejects(target.insertRevisions([revision(3n, 2), other]), StoreRefused);
      }
      assert.deepEqual((await rowsOf(database)).revisions, first);
    });

    test('gets no first token from a service while the copy is not finished', async () => {
      const database = await engine.newDatabase();
      const target = await openTarget(database);
      await target.insertRevisions([revision(1n)]);
      await target.close();
      await using service = await startTestService({ database });
      assert.deepEqual([service.firstToken, service.hasToken], [undefined, false]);
    });

    test('brings a token up to the state it has elsewhere, and tells services of it', async () => {
      const database = await engine.newDatabase();
      await using target = await openTarget(database);
      await using reader = await openForReading(database);
      const other = { ...TOKEN, id: 8, hash: 'b'.repeat(64), label: 'eight' };
      await target.putTokens([TOKEN, other]);
      assert.deepEqual(await tokensOf(reader), [
        { ...TOKEN, changeNumber: 1 },
        { ...other, changeNumber: 2 },
      ]);
      const used = { ...TOKEN, lastUsedDay: '2026-01-01' };
      await target.putTokens([used]);
      assert.deepEqual((await tokensOf(reader))[0], { ...used, changeNumber: 1 });
      const revoked = { ...used, revokedAt: 3, expiresAt: null };
      await target.putTokens([revoked]);
      assert.deepEqual((await tokensOf(reader))[0], { ...revoked, changeNumber: 3 });
    });

    test('never undoes a revocation, nor takes a token for another, and changes all of them or none', async () => {
      const database = await engine.newDatabase();
      await using target = await openTarget(database);
      await using reader = await openForReading(database);
      const revoked = { ...TOKEN, revokedAt: 3 };
      await target.putTokens([revoked]);
      const fresh = { ...TOKEN, id: 8, hash: 'b'.repeat(64), label: 'eight' };
      const others = [
        TOKEN,
        { ...TOKEN, lastUsedDay: '2026-01-01' },
        { ...revoked, hash: 'c'.repeat(64) },
        { ...revoked, id: 9 },
        { ...fresh, label: 'seven' },
      ];
      for (const other of others) {
        const tokens = [fresh, other];
        await assert.rejects(target.putTokens(tokens), StoreRefused);
        assert.deepEqual(await tokensOf(reader), [{ ...revoked, changeNumber: 1 }]);
      }
    });
  });
}

test('PostgreSQL takes a revision for done that a copy before it left on its way', async () => {
  const database = await postgres.newDatabase();
  await using target = await openTarget(database);
  await target.insertRevisions([revision(1n), revision(2n)]);
  await target.insertRevisions([revision(1n), revision(1n, 2), revision(2n), revision(3n)]);
  const { revisions } = await rowsOf(database);
  assert.deepEqual(revisions, [revision(1n), revision(1n, 2), revision(2n), revision(3n)]);
});
