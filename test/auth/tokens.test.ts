import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { TOKEN_REFRESH_INTERVAL_MIN_MS } from '../../src/auth/limits.ts';
import { hashToken, isWellFormed, makeToken } from '../../src/auth/token.ts';
import { TokenCache, type TokenLookup, type TokenSource } from '../../src/auth/token-cache.ts';
import { TOKENS_AT_A_TIME_MAX } from '../../src/contract/limits.ts';
import { openTokenStore } from '../../src/store/open-store.ts';
import type { StorageEngine } from '../../src/store/plant-store.ts';
import { startTestService } from '../harness/running-service.ts';
import { type EngineUnderTest, enginesUnderTest, openTokens } from '../harness/store-under-test.ts';
import { until } from '../harness/until.ts';

/** A change of a token takes effect within this, on every instance. */
const EFFECT_WITHIN_MS = 5_000;

const ENGINES = await enginesUnderTest();

suite('the form of a token', () => {
  test('is plant_, 30 random characters and 6 of checksum', () => {
    const made = Array.from({ length: 1000 }, makeToken);
    for (const token of made) {
      assert.match(token, /^plant_[0-9A-Za-z]{36}$/);
      assert.ok(isWellFormed(token));
    }
    assert.equal(new Set(made).size, made.length);
  });

  test('and its hash stay what they are: tokens in use are checked by later versions', () => {
    assert.ok(isWellFormed('plant_Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz93ANwQr'));
    // FIPS 180-4.
    assert.equal(hashToken('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });

  // CRC-32 finds every error within 32 bits in a row, which is four characters.
  test('does not survive a slip of the finger', () => {
    const text = fc.string({ minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(fc.constant(null).map(makeToken), fc.nat(), text, (token, place, more) => {
        const index = place % (token.length - 1);
        const [before, behind] = [token.slice(0, index), token.slice(index + 1)];
        const slips = [before + more[0] + behind, before + more + token[index] + behind, before + behind];
        slips.push(before + behind[0] + token[index] + behind.slice(1));
        for (const slip of slips) assert.ok(slip === token || !isWellFormed(slip), `${slip} of ${token}`);
      }),
      { numRuns: 2000 },
    );
  });
});

/** Asks as a request does that is not on the fast path. */
function lookUp(directory: TokenCache, token: string): Promise<TokenLookup> {
  return directory.lookUp(hashToken(token));
}

async function open(
  source: TokenSource,
  failed = (cause: unknown): void => assert.fail(String(cause)),
): Promise<TokenCache & AsyncDisposable> {
  const directory = await TokenCache.open(source, failed);
  return Object.assign(directory, { [Symbol.asyncDispose]: () => directory.close() });
}

async function assertRejectedSoon(directory: TokenCache, token: string): Promise<void> {
  const deadline = Date.now() + EFFECT_WITHIN_MS;
  while ((await lookUp(directory, token)) !== undefined) {
    assert.ok(Date.now() < deadline, `still accepted after ${EFFECT_WITHIN_MS} ms`);
    await wait(20);
  }
}

/** A real source of which some methods are replaced. */
function changedSource(source: TokenSource, changes: Partial<TokenSource>): TokenSource {
  return {
    tokensChangedSince: changeNumber => source.tokensChangedSince(changeNumber),
    tokensFingerprint: () => source.tokensFingerprint(),
    recordTokenUse: (ids, day) => source.recordTokenUse(ids, day),
    ...changes,
  };
}

suite('the directory of tokens, beside a command line that changes them', { concurrency: true }, () => {
  for (const engine of ENGINES) {
    suite(`in ${engine.name}`, { concurrency: true }, () => testDirectory(engine));
  }
});

function testDirectory(under: EngineUnderTest): void {
  /** As the service has it, and as the command line has it. */
  let served: StorageEngine;
  let managed: StorageEngine;

  before(async () => {
    const database = await under.newDatabase();
    served = await openTokenStore(database);
    managed = await openTokenStore(database);
  });
  after(async () => {
    await served.close();
    await managed.close();
  });

  let lastLabel = 0;
  async function create(expiresAt: number | null = null) {
    const token = makeToken();
    const label = `token ${++lastLabel}`;
    const stored = await managed.createToken({ hash: hashToken(token), label, createdAt: 1, expiresAt });
    return { token, label, id: stored!.id };
  }

  test('refuses a revoked token within 5 s, on two instances', async () => {
    const { token, label, id } = await create();
    await using first = await open(served);
    await using second = await open(managed);
    // At once, as it was made before they were opened.
    assert.equal(first.lookUpCached(hashToken(token)), id);
    assert.equal(second.lookUpCached(hashToken(token)), id);
    await managed.revokeToken(label, Date.now());
    await Promise.all([assertRejectedSoon(first, token), assertRejectedSoon(second, token)]);
  });

  test('accepts a token until it expires', async () => {
    const expiresAt = Date.now() + 2_500;
    const { token, id } = await create(expiresAt);
    const { token: old } = await create(Date.now());
    await using directory = await open(served);
    assert.equal(await lookUp(directory, old), undefined);
    assert.equal(await lookUp(directory, token), id);
    await assertRejectedSoon(directory, token);
    assert.ok(Date.now() >= expiresAt);
  });

  test('asks the store a few times only, while 10,000 tokens are guessed, and delays nobody', async () => {
    let reads = 0;
    const source = changedSource(served, {
      tokensFingerprint: () => {
        reads++;
        return served.tokensFingerprint();
      },
    });
    const { token, id } = await create();
    await using directory = await open(source);
    const start = performance.now();
    for (let round = 0; round < 10; round++) {
      const guesses = Array.from({ length: 1000 }, () => lookUp(directory, makeToken()));
      // Not a promise: whoever holds a known token waits for nothing.
      assert.equal(directory.lookUpCached(hashToken(token)), id);
      assert.deepEqual(new Set(await Promise.all(guesses)), new Set([undefined]));
    }
    const passedMs = performance.now() - start;
    const readsMax = 2 + passedMs / TOKEN_REFRESH_INTERVAL_MIN_MS;
    assert.ok(reads <= readsMax, `${reads} reads in ${passedMs} ms`);
  });

  test('records the day on which a token was last accepted, and of no other', async () => {
    const { token, id } = await create();
    const { token: rejected, id: rejectedId, label } = await create();
    await managed.revokeToken(label, Date.now());
    const days = [today()];
    {
      await using directory = await open(served);
      assert.equal(await lookUp(directory, token), id);
      assert.equal(await lookUp(directory, rejected), undefined);
    }
    days.push(today());
    const stored = await managed.tokensChangedSince(0);
    assert.ok(days.includes(stored.find(each => each.id === id)!.lastUsedDay!));
    assert.equal(stored.find(each => each.id === rejectedId)!.lastUsedDay, null);
  });

  test('keeps to what it knows while the store does not answer, and says so once', async () => {
    let reads: PromiseWithResolvers<never>[] | undefined;
    const source = changedSource(served, {
      tokensFingerprint: () => {
        if (reads === undefined) return served.tokensFingerprint();
        reads.push(Promise.withResolvers<never>());
        return reads.at(-1)!.promise;
      },
    });
    const { token, label, id } = await create();
    const causes: unknown[] = [];
    await using directory = await open(source, cause => causes.push(cause));
    reads = [];
    const first = lookUp(directory, makeToken());
    await until('a read is in flight', () => reads?.length === 1);
    // Nobody waits for two reads of a store that does not answer.
    const during = lookUp(directory, makeToken());
    reads[0]!.reject(new Error('no answer'));
    const unknown = await Promise.all([first, during, lookUp(directory, makeToken())]);
    assert.deepEqual(unknown, Array(3).fill('storeUnavailable'));
    assert.equal(reads.length, 1);
    assert.equal(await lookUp(directory, token), id);
    assert.equal(causes.length, 1);
    await managed.revokeToken(label, Date.now());
    await until('it is read again', () => reads?.length === 2);
    reads[1]!.reject(new Error('no answer'));
    reads = undefined;
    await assertRejectedSoon(directory, token);
    assert.equal(await lookUp(directory, makeToken()), undefined);
    assert.equal(causes.length, 1);
  });

  test('refuses a token within 5 s whose revocation was given a number that was read before', async () => {
    const database = await under.newDatabase();
    await using store = await openTokens(database);
    const [old, lost] = [makeToken(), makeToken()];
    for (const token of [old, lost]) {
      await store.createToken({ hash: hashToken(token), label: token, createdAt: 1, expiresAt: null });
    }
    await using directory = await open(store);
    assert.deepEqual([await lookUp(directory, old), await lookUp(directory, lost)], [1, 2]);
    // As when a backup is put back, which lacks the second token.
    await under.sql(database, `DELETE FROM token WHERE id = 2`);
    await using owner = await openTokens(database);
    assert.equal((await owner.revokeToken(old, 2))?.changeNumber, 2);
    await Promise.all([assertRejectedSoon(directory, old), assertRejectedSoon(directory, lost)]);
  });

  test('finds a new token while the store can be read and not written', async () => {
    const readOnly = changedSource(served, { recordTokenUse: () => new Promise(() => {}) });
    const known = await create();
    const directory = await TokenCache.open(readOnly, () => {});
    // Not awaited: the last use is written for ever.
    using ending = new DisposableStack();
    ending.defer(() => void directory.close());
    assert.equal(await lookUp(directory, known.token), known.id);
    const late = await create();
    assert.equal(await lookUp(directory, late.token), late.id);
  });

  test('does not open the store again for a lookup that is due when the service ends', async () => {
    const engine = await openTokenStore(await under.newDatabase());
    const directory = await open(engine);
    assert.equal(await lookUp(directory, makeToken()), undefined);
    // Reads are rationed, so this one has to wait; its client is gone by then.
    const late = lookUp(directory, makeToken());
    await directory.close();
    await engine.close();
    assert.equal(await late, 'storeUnavailable');
    assert.equal(await lookUp(directory, makeToken()), 'storeUnavailable');
    // Where the store was opened again, the process would never end.
    await wait(2 * TOKEN_REFRESH_INTERVAL_MIN_MS);
  });
}

test('more tokens than one read brings are all read, and their use is recorded', async () => {
  const tokens = Array.from({ length: TOKENS_AT_A_TIME_MAX + 2 }, makeToken);
  const stored = tokens.map((token, index) => ({
    ...{ id: index + 1, hash: hashToken(token), label: token, createdAt: 1, expiresAt: null },
    ...{ revokedAt: null, lastUsedDay: null, changeNumber: index + 1 },
  }));
  const recorded: number[] = [];
  const directory = await open({
    tokensChangedSince: async changeNumber => stored.slice(changeNumber, changeNumber + TOKENS_AT_A_TIME_MAX),
    tokensFingerprint: async () => 'one',
    recordTokenUse: async ids => {
      assert.ok(ids.length <= TOKENS_AT_A_TIME_MAX);
      recorded.push(...ids);
    },
  });
  const holders = tokens.map(token => directory.lookUpCached(hashToken(token)));
  await directory.close();
  const ids = stored.map(({ id }) => id);
  assert.deepEqual([holders, recorded], [ids, ids]);
});

test('a first token is made only where nobody but this machine reaches the service', async () => {
  await using service = await startTestService({ listen: { host: '0.0.0.0', port: 0 } });
  assert.deepEqual([service.firstToken, service.hasToken], [undefined, false]);
});

function today(): string {
  return new Date().toISOString().slice(0, 10);
}
