import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { hashToken } from '../../src/auth/token.ts';
import { TOKENS_AT_A_TIME_MAX } from '../../src/contract/limits.ts';
import type { NewStoredToken } from '../../src/contract/stored-token.ts';
import { plantWrite } from '../../src/store/audit/checksum.ts';
import { StoreUnavailable } from '../../src/store/plant-store.ts';
import { openReader } from '../harness/open-store.ts';
import {
  type EngineUnderTest,
  enginesUnderTest,
  openNewStore,
  openStore,
  openTokens,
} from '../harness/store-under-test.ts';

function newToken(label: string, rest: Partial<NewStoredToken> = {}): NewStoredToken {
  return { hash: hashToken(label), label, createdAt: 1, expiresAt: null, ...rest };
}

for (const engine of await enginesUnderTest()) {
  suite(`the tokens of a store in ${engine.name}`, { concurrency: 4 }, () => testTokens(engine));
  suite(`the codes of the console in ${engine.name}`, { concurrency: 4 }, () => testCodes(engine));
}

function testTokens(under: EngineUnderTest): void {
  test('opening reports whether the store is new', async () => {
    const database = await under.newDatabase();
    for (const isNew of [true, false]) {
      await using engine = await openTokens(database);
      assert.equal(engine.schemaSteps.before === 0, isNew);
    }
  });

  test('are stored and revoked with all their columns, and each change has a number', async () => {
    await using engine = await openNewStore(under);
    assert.deepEqual(await engine.tokens(), []);
    const first = {
      ...newToken('first', { createdAt: 2 ** 41, expiresAt: 8.64e15 }),
      ...{ id: 1, revokedAt: null, lastUsedDay: null, changeNumber: 1 },
    };
    const { id, revokedAt, lastUsedDay, changeNumber, ...asked } = first;
    assert.deepEqual([await engine.createToken(asked)], [first]);
    // As after a lost result.
    assert.deepEqual(await engine.createToken(asked), first);
    const second = (await engine.createToken(newToken('second, "quoted" \'ä\' \u{1f335}')))!;
    assert.deepEqual([second.id, second.expiresAt, second.changeNumber], [2, null, 2]);
    assert.deepEqual(await engine.tokens(), [first, second]);

    const revoked = await engine.revokeToken('first', 2 ** 41 + 1);
    assert.deepEqual([revoked], [{ ...first, revokedAt: 2 ** 41 + 1, changeNumber: 3 }]);
    assert.deepEqual(await engine.tokens(), [revoked, second]);
    // A second revocation changes nothing.
    assert.deepEqual([await engine.revokeToken('first', 2 ** 42)], [revoked]);
    await using reader = await openReader(engine.database);
    assert.deepEqual(await reader.tokens(), [revoked, second], 'in the order of ids');
  });

  test('have unique labels, also after a revocation', async () => {
    await using engine = await openNewStore(under);
    const first = await engine.createToken(newToken('taken'));
    const other = newToken('taken', { hash: '1'.repeat(64) });
    assert.equal(await engine.createToken(other), undefined);
    await engine.revokeToken('taken', 2);
    assert.equal(await engine.createToken(other), undefined);
    assert.equal((await engine.createToken({ ...other, label: 'Taken' }))?.label, 'Taken');
    assert.equal(await engine.revokeToken('none', 2), undefined);
    assert.deepEqual(
      (await engine.tokens()).map(({ hash, label }) => [hash, label]),
      [
        [first!.hash, 'taken'],
        [other.hash, 'Taken'],
      ],
    );
  });

  test('store the day of their last use, which gets no change number', async () => {
    await using engine = await openNewStore(under);
    for (const label of ['a', 'b', 'c']) await engine.createToken(newToken(label));
    await engine.recordTokenUse([1, 3], '2026-01-30');
    await engine.recordTokenUse([3], '2026-01-31');
    await engine.recordTokenUse([], '2026-02-01');
    await engine.recordTokenUse([99], '2026-02-01');
    assert.deepEqual(
      (await engine.tokens()).map(({ lastUsedDay, changeNumber }) => [lastUsedDay, changeNumber]),
      [
        ['2026-01-30', 1],
        [null, 2],
        ['2026-01-31', 3],
      ],
    );
  });

  test('are read in several pages without a gap', async () => {
    await using engine = await openNewStore(under);
    const count = 2 * TOKENS_AT_A_TIME_MAX + 1;
    const rows = Array.from({ length: count }, (_, index) => {
      const id = index + 1;
      return `(${id}, '${hashToken(String(id))}', 'token ${id}', 1, ${id})`;
    });
    const insert = 'INSERT INTO token (id, hash, label, created_at, change_number) VALUES';
    await under.sql(engine.database, `${insert} ${rows.join(', ')}`);
    assert.deepEqual(
      (await engine.tokens()).map(({ id }) => id),
      rows.map((_, index) => index + 1),
    );
  });

  test('have a fingerprint that changes with each change, also when a change number is reused', async () => {
    await using engine = await openNewStore(under);
    await using other = await openTokens(engine.database);
    const seen = new Set<string>();
    const assertChanged = async (): Promise<void> => {
      const fingerprint = await engine.tokensFingerprint();
      assert.ok(!seen.has(fingerprint));
      seen.add(fingerprint);
      // A plant does not change it.
      await engine.commit([plantWrite({ id: BigInt(seen.size), name: 'A' }, 1)]);
      assert.equal(await engine.tokensFingerprint(), fingerprint);
    };
    await assertChanged();
    for (const label of ['first', 'lost']) await other.createToken(newToken(label));
    await assertChanged();
    await under.sql(engine.database, `DELETE FROM token WHERE label = 'lost'`);
    assert.equal((await other.createToken(newToken('in its place')))?.changeNumber, 2);
    await assertChanged();
    await under.sql(engine.database, `DELETE FROM token WHERE label = 'in its place'`);
    assert.equal((await other.revokeToken('first', 2))?.changeNumber, 2);
    await assertChanged();
  });

  test('are not read from a closed store', async () => {
    const engine = await openTokens(await under.newDatabase());
    await engine.close();
    await assert.rejects(engine.tokens(), StoreUnavailable);
    // If the read had opened it again, this process would not end.
    await engine.close();
  });

  test('have unique ids and change numbers when created and revoked concurrently', async () => {
    const database = await under.newDatabase();
    await using one = await openStore(database);
    await using other = await openTokens(database);
    await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const engine = index % 2 === 0 ? one : other;
        const label = String(index);
        const token = await engine.createToken(newToken(label));
        assert.equal(token?.label, label);
        if (index % 4 === 0) assert.equal((await other.revokeToken(label, 9))?.revokedAt, 9);
      }),
    );
    const all = await one.tokens();
    assert.equal(new Set(all.map(({ id }) => id)).size, 20);
    assert.equal(new Set(all.map(({ changeNumber }) => changeNumber)).size, 20);
    assert.equal(all.filter(({ revokedAt }) => revokedAt !== null).length, 5);
    // 20 tokens were created and 5 revoked, so the change numbers have no gap.
    assert.equal(Math.max(...all.map(({ changeNumber }) => changeNumber)), 25);
  });
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
      assert.deepEqual(await service.takeConsoleCodes(['another'], now), []);
      assert.deepEqual(await service.takeConsoleCodes(['another', hash], now), isValid ? [hash] : [], hash);
      assert.deepEqual(await hashesIn(service.database), []);
      assert.deepEqual(await command.takeConsoleCodes([hash], now), []);
    }
    for (const expiresAt of [1, soon, Date.now() - 1, soon + 1])
      await command.createConsoleCode(`until ${expiresAt}`, expiresAt);
    assert.deepEqual(await hashesIn(service.database), [`until ${soon}`, `until ${soon + 1}`]);
  });
}
