import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { Clock } from '../../../src/core/clock.ts';
import { TOKEN_GROUP_SIZE, TOKENS_AT_A_TIME_MAX } from '../../../src/core/tokens/stored-token.ts';
import { hashToken, isWellFormed, makeToken } from '../../../src/core/tokens/token.ts';
import {
  TOKEN_REFRESH_INTERVAL_MIN_MS,
  TOKEN_REFRESH_INTERVAL_MS,
  TokenCache,
  type TokenLookup,
  type TokenSource,
} from '../../../src/core/tokens/token-cache.ts';
import type { StorageEngine } from '../../../src/engines/storage-engine.ts';
import { ControlledClock } from '../../harness/controlled-clock.ts';
import { openCommandStore } from '../../harness/open-store.ts';
import { startTestService } from '../../harness/running-service.ts';
import { openTokens, sqliteUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

/** A change of a token takes effect within this, on every instance. */
const EFFECT_WITHIN_MS = 5_000;

// The tests of the store show that both engines return the same tokens.
const under = sqliteUnderTest();

test('a token is plant_, 30 random characters and a checksum of 6; a typing error is noticed', () => {
  const made = Array.from({ length: 1000 }, makeToken);
  for (const token of made) {
    assert.match(token, /^plant_[0-9A-Za-z]{36}$/);
    assert.ok(isWellFormed(token));
  }
  assert.equal(new Set(made).size, made.length);
  assert.ok(isWellFormed('plant_Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz93ANwQr'), 'a token in use stays valid');
  // FIPS 180-4.
  assert.equal(hashToken('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  // CRC-32 finds every error within 32 bits in a row, which is four characters.
  for (const typo of [
    'plant_Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz93ANwQR',
    'plant_zZ9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz93ANwQr',
    'plant_Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz3ANwQr',
  ])
    assert.ok(!isWellFormed(typo), typo);
});

/** A lookup as for a request whose token is not cached. @returns the id of a valid token */
async function lookUp(
  cache: TokenCache,
  token: string,
): Promise<number | Exclude<TokenLookup['kind'], 'valid'>> {
  const found = await cache.lookUp(hashToken(token));
  return found.kind === 'valid' ? found.id : found.kind;
}

async function open(
  source: TokenSource,
  failed = (cause: unknown): void => assert.fail(String(cause)),
  clock?: Clock,
): Promise<TokenCache & AsyncDisposable> {
  const cache = await TokenCache.open(source, failed, clock);
  return Object.assign(cache, { [Symbol.asyncDispose]: () => cache.close() });
}

async function assertRejectedSoon(cache: TokenCache, token: string): Promise<void> {
  const deadline = Date.now() + EFFECT_WITHIN_MS;
  await until('the token is rejected', async () => {
    const isLate = Date.now() > deadline;
    const found = await lookUp(cache, token);
    assert.ok(!isLate || typeof found !== 'number', `still accepted after ${EFFECT_WITHIN_MS} ms`);
    return found === 'rejected';
  });
}

function changedSource(source: TokenSource, changes: Partial<TokenSource>): TokenSource {
  return {
    tokenFingerprints: () => source.tokenFingerprints(),
    tokensOfGroup: group => source.tokensOfGroup(group),
    recordTokenUse: (ids, day) => source.recordTokenUse(ids, day),
    ...changes,
  };
}

suite('the token cache, while a command line changes tokens', { concurrency: true }, () => {
  /** The store as the service and as the command line open it. */
  let served: StorageEngine;
  let managed: StorageEngine;

  before(async () => {
    const database = await under.newDatabase();
    served = await openCommandStore(database);
    managed = await openCommandStore(database);
  });
  after(async () => {
    await served.close();
    await managed.close();
  });

  let lastLabel = 0;
  async function create() {
    const token = makeToken();
    const label = `token ${++lastLabel}`;
    const stored = await managed.tokenTable.createToken({
      hash: hashToken(token),
      label,
      createdAt: 1,
      expiresAt: null,
    });
    return { token, label, id: stored!.id };
  }

  test('refreshes only a few times while 10,000 tokens are guessed, and delays no known token', async () => {
    let reads = 0;
    const source = changedSource(served.tokenTable, {
      tokenFingerprints: () => {
        reads++;
        return served.tokenTable.tokenFingerprints();
      },
    });
    const { token, id } = await create();
    await using cache = await open(source);
    const start = performance.now();
    for (let round = 0; round < 10; round++) {
      const guesses = Array.from({ length: 1000 }, () => lookUp(cache, makeToken()));
      // Synchronous: a client with a known token does not wait.
      assert.equal(cache.lookUpCached(hashToken(token)), id);
      assert.deepEqual(new Set(await Promise.all(guesses)), new Set(['rejected']));
    }
    const passedMs = performance.now() - start;
    const readsMax = 2 + passedMs / TOKEN_REFRESH_INTERVAL_MIN_MS;
    assert.ok(reads <= readsMax, `${reads} reads in ${passedMs} ms`);
  });

  test('records the last day of use of valid tokens, with few of them in a statement', async () => {
    const database = await under.newDatabase();
    await using store = await openTokens(database);
    // A token with the label 0 is revoked.
    await under.sql(
      database,
      `WITH number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${TOKENS_AT_A_TIME_MAX + 2})
        INSERT INTO token (id, hash, label, created_at, revoked_at, change_number)
        SELECT n, 'hash ' || n, 'label ' || n, 1, CASE WHEN n = 1 THEN 2 END, n FROM number`,
    );
    const lengths: number[] = [];
    const source = changedSource(store.tokenTable, {
      recordTokenUse: (ids, day) => {
        lengths.push(ids.length);
        return store.tokenTable.recordTokenUse(ids, day);
      },
    });
    const stored = await store.tokenTable.tokens();
    const days = [null, today()];
    {
      await using cache = await open(source);
      const ids = stored.map(({ hash }) => cache.lookUpCached(hash));
      assert.deepEqual(ids, [undefined, ...stored.slice(1).map(({ id }) => id)]);
    }
    days.push(today());
    assert.deepEqual(lengths, [TOKENS_AT_A_TIME_MAX, 1]);
    for (const { id, lastUsedDay } of await store.tokenTable.tokens())
      assert.ok(id === 1 ? lastUsedDay === null : lastUsedDay !== null && days.includes(lastUsedDay));
  });

  test('records the day of the use, although the store can be written only on the next day', async () => {
    const used = [await create(), await create()];
    const clock = new ControlledClock();
    clock.setWall(Date.UTC(2026, 2, 31, 23, 59, 59));
    const failures: unknown[] = [];
    const recorded: [ids: number[], day: string][] = [];
    const source = changedSource(served.tokenTable, {
      recordTokenUse: async (ids, day) => {
        if (failures.length === 0) throw new Error('the store is not writable');
        recorded.push([ids, day]);
      },
    });
    {
      await using cache = await open(source, failure => failures.push(failure), clock);
      for (const { token } of used) assert.ok(cache.lookUpCached(hashToken(token)));
      clock.advance(TOKEN_REFRESH_INTERVAL_MS);
      await until('the recording fails', () => failures.length > 0);
      clock.setWall(Date.UTC(2026, 3, 1));
      assert.ok(cache.lookUpCached(hashToken(used[1]!.token)));
    }
    assert.deepEqual(recorded, [
      [[used[0]!.id], '2026-03-31'],
      [[used[1]!.id], '2026-04-01'],
    ]);
  });

  test('accepts cached tokens for a while if the store does not respond, and reports that once', async () => {
    let reads: PromiseWithResolvers<never>[] | undefined;
    const source = changedSource(served.tokenTable, {
      tokenFingerprints: () => {
        if (reads === undefined) return served.tokenTable.tokenFingerprints();
        reads.push(Promise.withResolvers<never>());
        return reads.at(-1)!.promise;
      },
    });
    const { token, label, id } = await create();
    const causes: unknown[] = [];
    await using cache = await open(source, cause => causes.push(cause));
    reads = [];
    const first = lookUp(cache, makeToken());
    await until('a read is in flight', () => reads?.length === 1);
    // No lookup waits for two refreshes while the store does not respond.
    const during = lookUp(cache, makeToken());
    assert.equal(await lookUp(cache, token), id);
    reads[0]!.reject(new Error('no response'));
    assert.deepEqual(await Promise.all([first, during]), Array(2).fill('storeUnavailable'));
    assert.equal(reads.length, 1);
    assert.equal(causes.length, 1);
    await managed.tokenTable.revokeToken(label, Date.now());
    await until('it is read again', () => reads?.length === 2);
    // Nor does it wait for longer than a second, whether the token is known or not.
    assert.equal(await lookUp(cache, makeToken()), 'storeUnavailable');
    reads[1]!.reject(new Error('no response'));
    reads = undefined;
    await assertRejectedSoon(cache, token);
    assert.equal(await lookUp(cache, makeToken()), 'rejected');
    assert.equal(causes.length, 1);
  });

  test('rejects a revoked token within 5 s even if the change number was used before', async () => {
    const database = await under.newDatabase();
    await using store = await openTokens(database);
    const [old, lost] = [makeToken(), makeToken()];
    for (const token of [old, lost]) {
      await store.tokenTable.createToken({
        hash: hashToken(token),
        label: token,
        createdAt: 1,
        expiresAt: null,
      });
    }
    await using cache = await open(store.tokenTable);
    assert.deepEqual([await lookUp(cache, old), await lookUp(cache, lost)], [1, 2]);
    // Like a restored backup without the second token.
    await under.sql(database, `DELETE FROM token WHERE id = 2`);
    await using owner = await openTokens(database);
    assert.equal((await owner.tokenTable.revokeToken(old, 2))?.changeNumber, 2);
    await Promise.all([assertRejectedSoon(cache, old), assertRejectedSoon(cache, lost)]);
  });

  test('finds a new token while the store is readable but not writable', async () => {
    const readOnly = changedSource(served.tokenTable, { recordTokenUse: () => new Promise(() => {}) });
    const known = await create();
    const cache = await TokenCache.open(readOnly, () => {});
    // Not awaited, because the recording of the last use does not settle.
    using ending = new DisposableStack();
    ending.defer(() => void cache.close());
    assert.equal(await lookUp(cache, known.token), known.id);
    const late = await create();
    assert.equal(await lookUp(cache, late.token), late.id);
  });

  test('does not open the store again for a lookup that is pending when the service ends', async () => {
    const engine = await openCommandStore(await under.newDatabase());
    const cache = await open(engine.tokenTable);
    assert.equal(await lookUp(cache, makeToken()), 'rejected');
    // This lookup waits for a refresh; its client has disconnected by then.
    const late = lookUp(cache, makeToken());
    await cache.close();
    await engine.close();
    assert.equal(await late, 'storeUnavailable');
    assert.equal(await lookUp(cache, makeToken()), 'storeUnavailable');
    // If the store were opened again, the process would never end.
    await wait(2 * TOKEN_REFRESH_INTERVAL_MIN_MS);
  });
});

const GROUPS = 3;

/** A store with tokens that fill all groups but the last place. */
async function storeWithGroups(): Promise<string> {
  const database = await under.newDatabase();
  await using _created = await openTokens(database);
  const rows = Array.from({ length: GROUPS * TOKEN_GROUP_SIZE - 2 }, (_, index) => {
    const label = `token ${index + 1}`;
    return `(${index + 1}, '${hashToken(label)}', '${label}', 1, ${index + 1})`;
  });
  const insert = 'INSERT INTO token (id, hash, label, created_at, change_number) VALUES';
  await under.sql(database, `${insert} ${rows.join(', ')}`);
  return database;
}

const newToken = (label: string) => ({ hash: hashToken(label), label, createdAt: 1, expiresAt: null });

// On SQLite, a service does not see its own commits in the fingerprints.
for (const { title, label, change, isValidAtOnce, isValid } of [
  {
    title: 'the service revokes a token',
    label: 'token 1',
    change: (service: StorageEngine) => service.tokenTable.revokeToken('token 1', 2),
    isValidAtOnce: false,
    isValid: false,
  },
  {
    title: 'the service creates a token',
    label: 'new',
    change: (service: StorageEngine) => service.tokenTable.createToken(newToken('new')),
    isValidAtOnce: true,
    isValid: true,
  },
  {
    title: 'the service creates a token, and another program revokes it',
    label: 'new',
    change: async (service: StorageEngine, other: StorageEngine) => {
      const created = await service.tokenTable.createToken(newToken('new'));
      await other.tokenTable.revokeToken('new', 2);
      return created;
    },
    isValidAtOnce: true,
    isValid: false,
  },
])
  test(`${title} while the token cache reads all groups`, async t => {
    for (let groupsRead = 0; groupsRead <= GROUPS; groupsRead++)
      await t.test(`after ${groupsRead} of ${GROUPS} groups`, async () => {
        const database = await storeWithGroups();
        await using service = await openTokens(database);
        await using other = await openTokens(database);
        let reads = 0;
        let afterRead = async (): Promise<void> => {};
        const source = changedSource(service.tokenTable, {
          tokenFingerprints: async () => {
            const fingerprints = await service.tokenTable.tokenFingerprints();
            await afterRead();
            return fingerprints;
          },
          tokensOfGroup: async group => {
            const tokens = await service.tokenTable.tokensOfGroup(group);
            reads++;
            await afterRead();
            return tokens;
          },
        });
        const clock = new ControlledClock();
        await using cache = await open(source, undefined, clock);
        const refresh = async (): Promise<void> => {
          const lookup = lookUp(cache, makeToken());
          clock.advance(TOKEN_REFRESH_INTERVAL_MIN_MS);
          await lookup;
        };
        // A commit of another program: the next refresh reads all groups. It fills the last one.
        await other.tokenTable.createToken(newToken('of another program'));
        reads = 0;
        const changed = Promise.withResolvers<void>();
        afterRead = async () => {
          if (reads !== groupsRead) return;
          afterRead = async () => {};
          cache.add((await change(service, other))!);
          assert.equal(cache.lookUpCached(hashToken(label)) !== undefined, isValidAtOnce, 'at once');
          changed.resolve();
        };
        await refresh();
        await changed.promise;
        for (let round = 1; round <= 3; round++) {
          await refresh();
          assert.equal(cache.lookUpCached(hashToken(label)) !== undefined, isValid, `refresh ${round}`);
        }
        reads = 0;
        cache.add((await service.tokenTable.createToken(newToken('last')))!);
        for (let round = 0; round < 3; round++) await refresh();
        assert.equal(reads, 1, 'only the group of a new token is read again');
      });
  });

// Node's monotonic clock stands still while the machine is suspended, and the other one may be set.
test('a token is accepted only if the store was read lately by both clocks', async () => {
  await using store = await openTokens(await under.newDatabase());
  await store.tokenTable.createToken(newToken('A'));
  for (const jump of [
    (clock: ControlledClock) => clock.setWall(clock.wallNow() + EFFECT_WITHIN_MS),
    (clock: ControlledClock) => clock.setWall(clock.wallNow() - EFFECT_WITHIN_MS),
    (clock: ControlledClock) => clock.advance(EFFECT_WITHIN_MS),
  ]) {
    const clock = new ControlledClock();
    await using cache = await open(store.tokenTable, undefined, clock);
    assert.equal(cache.lookUpCached(hashToken('A')), 1);
    jump(clock);
    assert.equal(cache.lookUpCached(hashToken('A')), undefined);
  }
});

test('a first token is made only if the service is reachable from this machine alone', async () => {
  await using service = await startTestService({ listen: { host: '0.0.0.0', port: 0 } });
  assert.deepEqual([service.firstToken, service.hasToken], [undefined, false]);
});

function today(): string {
  return new Date().toISOString().slice(0, 10);
}
