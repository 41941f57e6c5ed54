import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { NewStoredToken } from '../../src/core/tokens/stored-token.ts';
import { TOKENS_AT_A_TIME_MAX } from '../../src/core/tokens/stored-token.ts';
import { hashToken } from '../../src/core/tokens/token.ts';
import { openReader } from '../harness/open-store.ts';
import { plantWrite } from '../harness/plant-write.ts';
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
}

function testTokens(under: EngineUnderTest): void {
  test('are stored and revoked with all their columns, and each change has a number', async () => {
    await using engine = await openNewStore(under);
    assert.deepEqual(await engine.tokenTable.tokens(), []);
    const first = {
      ...newToken('first', { createdAt: 2 ** 41, expiresAt: 8.64e15 }),
      id: 1,
      revokedAt: null,
      lastUsedDay: null,
      changeNumber: 1,
    };
    const { id, revokedAt, lastUsedDay, changeNumber, ...asked } = first;
    assert.deepEqual([await engine.tokenTable.createToken(asked)], [first]);
    // As after a lost result.
    assert.deepEqual(await engine.tokenTable.createToken(asked), first);
    const second = (await engine.tokenTable.createToken(newToken('second, "quoted" \'ä\' \u{1f335}')))!;
    assert.deepEqual([second.id, second.expiresAt, second.changeNumber], [2, null, 2]);
    assert.deepEqual(await engine.tokenTable.tokens(), [first, second]);

    const revoked = await engine.tokenTable.revokeToken('first', 2 ** 41 + 1);
    assert.deepEqual([revoked], [{ ...first, revokedAt: 2 ** 41 + 1, changeNumber: 3 }]);
    assert.deepEqual(await engine.tokenTable.tokens(), [revoked, second]);
    assert.deepEqual([await engine.tokenTable.revokeToken('first', 2 ** 42)], [revoked]);
    assert.equal(await engine.tokenTable.revokeToken('none', 2), undefined);
    // A label stays in use, also after the revocation.
    for (const label of ['first', second.label]) {
      const other = newToken(label, { hash: '1'.repeat(64) });
      assert.equal(await engine.tokenTable.createToken(other), undefined);
    }
    assert.equal((await engine.tokenTable.createToken(newToken('First')))?.id, 3);
    // The day of the last use gets no change number, and an earlier day changes nothing.
    for (const [ids, day] of [
      [[1, 3], '2026-01-30'],
      [[3], '2026-01-31'],
      [[3], '2026-01-30'],
      [[], '2026-02-01'],
      [[99], '2026-02-01'],
    ] as const)
      await engine.tokenTable.recordTokenUse([...ids], day);
    const tokens = await engine.tokenTable.tokens();
    const changes = tokens.map(({ lastUsedDay, changeNumber }) => `${lastUsedDay} ${changeNumber}`);
    assert.deepEqual(changes, ['2026-01-30 3', 'null 2', '2026-01-31 4']);
    await using reader = await openReader(engine.database);
    assert.deepEqual(await reader.tokens(), tokens, 'in the order of ids');
  });

  test('are read in several pages, or in groups, without a gap', async () => {
    await using engine = await openNewStore(under);
    const count = 2 * TOKENS_AT_A_TIME_MAX + 1;
    const rows = Array.from({ length: count }, (_, index) => {
      const id = index + 1;
      return `(${id}, '${hashToken(String(id))}', 'token ${id}', 1, ${id})`;
    });
    const insert = 'INSERT INTO token (id, hash, label, created_at, change_number) VALUES';
    await under.sql(engine.database, `${insert} ${rows.join(', ')}`);
    assert.deepEqual(
      (await engine.tokenTable.tokens()).map(({ id }) => id),
      rows.map((_, index) => index + 1),
    );
    const fingerprints = [...(await engine.tokenTable.tokenFingerprints())].sort(
      ([one], [other]) => one - other,
    );
    const read = await Promise.all(fingerprints.map(([group]) => engine.tokenTable.tokensOfGroup(group)));
    assert.deepEqual(
      read.flatMap(({ tokens }) => tokens),
      await engine.tokenTable.tokens(),
    );
    const own = under.name === 'PostgreSQL' ? fingerprints.map(([, fingerprint]) => fingerprint) : [];
    assert.deepEqual(
      read.flatMap(({ fingerprint }) => fingerprint ?? []),
      own,
    );
  });

  test('have a fingerprint that changes with each change, also when a change number is reused', async () => {
    await using engine = await openNewStore(under);
    await using other = await openTokens(engine.database);
    const seen = new Set<string>();
    const assertChanged = async (): Promise<void> => {
      const fingerprint = (await engine.tokenTable.tokenFingerprints()).get(0)!;
      assert.ok(!seen.has(fingerprint));
      seen.add(fingerprint);
      await engine.commit([plantWrite({ id: BigInt(seen.size), name: 'A' }, 1)]);
      assert.equal((await engine.tokenTable.tokenFingerprints()).get(0), fingerprint);
    };
    await assertChanged();
    for (const label of ['first', 'lost']) await other.tokenTable.createToken(newToken(label));
    await assertChanged();
    await under.sql(engine.database, `DELETE FROM token WHERE label = 'lost'`);
    assert.equal((await other.tokenTable.createToken(newToken('in its place')))?.changeNumber, 2);
    await assertChanged();
    await under.sql(engine.database, `DELETE FROM token WHERE label = 'in its place'`);
    assert.equal((await other.tokenTable.revokeToken('first', 2))?.changeNumber, 2);
    await assertChanged();
  });

  test('have unique ids and change numbers when created and revoked concurrently', async () => {
    const database = await under.newDatabase();
    await using one = await openStore(database);
    await using other = await openTokens(database);
    await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const engine = index % 2 === 0 ? one : other;
        const label = String(index);
        const token = await engine.tokenTable.createToken(newToken(label));
        assert.equal(token?.label, label);
        if (index % 4 === 0) assert.equal((await other.tokenTable.revokeToken(label, 9))?.revokedAt, 9);
      }),
    );
    const all = await one.tokenTable.tokens();
    assert.equal(new Set(all.map(({ id }) => id)).size, 20);
    assert.equal(new Set(all.map(({ changeNumber }) => changeNumber)).size, 20);
    assert.equal(all.filter(({ revokedAt }) => revokedAt !== null).length, 5);
  });

  test('codes of the console are valid once, until they expire, and expired ones are deleted', async () => {
    const hashesIn = async (database: string): Promise<unknown[]> =>
      (await under.sql(database, 'SELECT hash FROM console_code ORDER BY hash')).map(({ hash }) => hash);
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
      await command.operatorTables.createConsoleCode(hash, expiresAt);
      assert.deepEqual(await hashesIn(service.database), [hash]);
      assert.deepEqual(await service.operatorTables.takeConsoleCodes(['another'], now), []);
      assert.deepEqual(
        await service.operatorTables.takeConsoleCodes(['another', hash], now),
        isValid ? [hash] : [],
        hash,
      );
      assert.deepEqual(await hashesIn(service.database), []);
      assert.deepEqual(await command.operatorTables.takeConsoleCodes([hash], now), []);
    }
    for (const expiresAt of [1, soon, Date.now() - 1, soon + 1])
      await command.operatorTables.createConsoleCode(`until ${expiresAt}`, expiresAt);
    assert.deepEqual(await hashesIn(service.database), [`until ${soon}`, `until ${soon + 1}`]);
  });

  test('sessions of the console are no codes, and end by themselves, or when they are ended', async () => {
    await using service = await openNewStore(under);
    await using another = await openTokens(service.database);
    const soon = Date.now() + 60_000;
    const sessions = (now: number, ...keys: string[]) => another.operatorTables.consoleSessions(keys, now);
    for (const key of ['one', 'other']) await service.operatorTables.createConsoleSession(key, soon);
    await service.operatorTables.createConsoleCode('code', soon);
    assert.deepEqual(await service.operatorTables.takeConsoleCodes(['one', 'other'], 1), []);
    assert.deepEqual(
      await sessions(soon - 1, 'one', 'other', 'code'),
      new Map([
        ['one', soon],
        ['other', soon],
      ]),
    );
    assert.deepEqual(await sessions(soon, 'one'), new Map());
    await service.operatorTables.extendConsoleSession('one', soon + 1);
    assert.deepEqual(await sessions(soon, 'one', 'other'), new Map([['one', soon + 1]]));
    await service.operatorTables.endConsoleSession('one');
    // Its end may come before the extension of another instance.
    await another.operatorTables.extendConsoleSession('one', soon + 2);
    assert.deepEqual(await sessions(1, 'one', 'other'), new Map([['other', soon]]));
    await service.operatorTables.extendConsoleSession('other', Date.now() - 1);
    await service.operatorTables.createConsoleSession('later', soon);
    const rows = await under.sql(service.database, 'SELECT hash FROM console_session');
    assert.deepEqual(rows, [{ hash: 'later' }]);
    assert.deepEqual(await service.operatorTables.takeConsoleCodes(['code'], 1), ['code']);
  });
}
