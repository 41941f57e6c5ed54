import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { bearerToken } from '../src/auth/bearer.ts';
import { hashToken, isWellFormed, makeToken } from '../src/auth/token.ts';
import { TokenDirectory, type TokenSource } from '../src/auth/token-directory.ts';
import {
  TOKEN_REFRESH_INTERVAL_MIN_MS,
  TOKEN_REFRESH_INTERVAL_MS,
  TOKENS_AT_A_TIME_MAX,
} from '../src/contract/limits.ts';
import type { StoredToken } from '../src/contract/stored-token.ts';
import { openTokenStore } from '../src/store/open-store.ts';
import type { StorageEngine } from '../src/store/plant-store.ts';
import { startServe } from './harness/program.ts';
import { until } from './harness/until.ts';
import { startTestService } from './running-service.ts';
import { type EngineUnderTest, enginesUnderTest } from './store-under-test.ts';

/** A change of a token takes effect within this, on every instance. */
const EFFECT_WITHIN_MS = 5_000;

const ENGINES = await enginesUnderTest();

suite('the form of a token', () => {
  const tokens = fc.constant(null).map(() => makeToken());

  test('is plant_, 30 random characters and 6 of checksum', () => {
    const made = Array.from({ length: 1000 }, makeToken);
    for (const token of made) {
      assert.match(token, /^plant_[0-9A-Za-z]{36}$/);
      assert.ok(isWellFormed(token));
    }
    assert.equal(new Set(made).size, made.length);
  });

  test('stays what it is: tokens in use are checked by later versions', () => {
    assert.ok(isWellFormed('plant_Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz93ANwQr'));
  });

  // CRC-32 finds every error within 32 bits in a row, which is four characters.
  test('does not survive the change of one character', () => {
    fc.assert(
      fc.property(tokens, fc.nat(), fc.string({ minLength: 1, maxLength: 1 }), (token, place, character) => {
        const index = place % token.length;
        fc.pre(token[index] !== character);
        assert.ok(!isWellFormed(token.slice(0, index) + character + token.slice(index + 1)));
      }),
      { numRuns: 2000 },
    );
  });

  test('does not survive the change of one letter or digit to any other', () => {
    const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    const token = makeToken();
    for (let index = 'plant_'.length; index < token.length; index++) {
      for (const character of alphabet.replace(token[index]!, '')) {
        assert.ok(!isWellFormed(token.slice(0, index) + character + token.slice(index + 1)));
      }
    }
  });

  test('does not survive two neighbours changing places', () => {
    fc.assert(
      fc.property(tokens, fc.nat(), (token, place) => {
        const index = place % (token.length - 1);
        fc.pre(token[index] !== token[index + 1]);
        const swapped = token.slice(0, index) + token[index + 1] + token[index] + token.slice(index + 2);
        assert.ok(!isWellFormed(swapped));
      }),
      { numRuns: 1000 },
    );
  });

  test('does not survive a character more or less', () => {
    fc.assert(
      fc.property(tokens, fc.nat(), fc.string({ minLength: 1, maxLength: 3 }), (token, place, more) => {
        const index = place % token.length;
        assert.ok(!isWellFormed(token.slice(0, index) + more + token.slice(index)));
        assert.ok(!isWellFormed(token.slice(0, index) + token.slice(index + 1)));
      }),
    );
  });

  test('is not that of other texts', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^plant_[0-9A-Za-z]{36}$/)),
        text => assert.ok(!isWellFormed(text)),
      ),
      { numRuns: 300 },
    );
  });

  test('is read from an Authorization field whole, in any case of the scheme', () => {
    fc.assert(
      fc.property(tokens, fc.constantFrom('Bearer ', 'bearer ', 'BEARER   '), (token, scheme) => {
        assert.equal(bearerToken([scheme + token]), token);
        assert.equal(bearerToken([scheme + token, scheme + token]), undefined);
        assert.equal(bearerToken([`${scheme}${token} x`]), undefined);
        assert.equal(bearerToken([token]), undefined);
      }),
    );
  });

  test('a hash is SHA-256 in hexadecimal, FIPS 180-4', () => {
    assert.equal(hashToken('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});

/** A real source that counts how often it is looked into. */
class CountingSource implements TokenSource {
  readonly #source: TokenSource;
  looks = 0;

  constructor(source: TokenSource) {
    this.#source = source;
  }

  tokensChangedSince(changeNumber: number): Promise<StoredToken[]> {
    this.looks++;
    return this.#source.tokensChangedSince(changeNumber);
  }

  recordTokenUse(tokenIds: number[], day: string): Promise<void> {
    return this.#source.recordTokenUse(tokenIds, day);
  }
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
  async function create(
    expiresAt: number | null = null,
  ): Promise<{ token: string; label: string; id: number }> {
    const token = makeToken();
    const label = `token ${++lastLabel}`;
    const stored = await managed.createToken({
      hash: hashToken(token),
      label,
      createdAt: Date.now(),
      expiresAt,
    });
    assert.ok(stored !== undefined);
    return { token, label, id: stored.id };
  }

  async function open(source: TokenSource = served): Promise<TokenDirectory & AsyncDisposable> {
    const directory = await TokenDirectory.open(source, cause => assert.fail(String(cause)));
    return Object.assign(directory, { [Symbol.asyncDispose]: () => directory.close() });
  }

  async function assertRefusedSoon(directory: TokenDirectory, token: string): Promise<void> {
    const deadline = Date.now() + EFFECT_WITHIN_MS;
    while ((await directory.holderOf(token)) !== undefined) {
      assert.ok(Date.now() < deadline, `still accepted after ${EFFECT_WITHIN_MS} ms`);
      await wait(20);
    }
  }

  test('knows a token made before it was opened, at once', async () => {
    const { token, id } = await create();
    await using directory = await open();
    assert.equal(directory.holderOf(token), id);
    assert.ok(!directory.isEmpty);
  });

  test('finds a token made a moment ago, at the first request with it', async () => {
    await using directory = await open();
    for (let count = 0; count < 5; count++) {
      const { token, id } = await create();
      assert.equal(await directory.holderOf(token), id);
    }
  });

  test('refuses a revoked token within 5 s, on two instances', async () => {
    const { token, label, id } = await create();
    await using first = await open();
    await using second = await open(managed);
    assert.equal(first.holderOf(token), id);
    assert.equal(second.holderOf(token), id);
    await managed.revokeToken(label, Date.now());
    await Promise.all([assertRefusedSoon(first, token), assertRefusedSoon(second, token)]);
  });

  test('accepts a token until it expires', async () => {
    const expiresAt = Date.now() + 2_500;
    const { token, id } = await create(expiresAt);
    await using directory = await open();
    assert.equal(directory.holderOf(token), id);
    await assertRefusedSoon(directory, token);
    assert.ok(Date.now() >= expiresAt);
  });

  test('refuses a token that has expired before', async () => {
    const { token } = await create(Date.now());
    await using directory = await open();
    assert.equal(await directory.holderOf(token), undefined);
  });

  test('asks the store a few times only, while 10,000 tokens are guessed, and delays nobody', async () => {
    const source = new CountingSource(served);
    const { token, id } = await create();
    await using directory = await open(source);
    const start = performance.now();
    for (let round = 0; round < 10; round++) {
      const guesses = Array.from({ length: 1000 }, () => directory.holderOf(makeToken()));
      // Not a promise: whoever holds a known token waits for nothing.
      assert.equal(directory.holderOf(token), id);
      assert.deepEqual(new Set(await Promise.all(guesses)), new Set([undefined]));
    }
    const passedMs = performance.now() - start;
    const looksMax = 2 + passedMs / TOKEN_REFRESH_INTERVAL_MIN_MS + passedMs / TOKEN_REFRESH_INTERVAL_MS;
    assert.ok(source.looks <= looksMax, `${source.looks} looks in ${passedMs} ms`);
  });

  test('does not ask the store for a mistyped token', async () => {
    const source = new CountingSource(served);
    await using directory = await open(source);
    for (let count = 0; count < 1000; count++) {
      assert.equal(directory.holderOf(`${makeToken().slice(0, -1)}-`), undefined);
    }
    assert.equal(source.looks, 1);
  });

  test('notes the day on which a token was last accepted, and of no other', async () => {
    const { token, id } = await create();
    const { token: refused, id: refusedId, label } = await create();
    await managed.revokeToken(label, Date.now());
    const days = [today()];
    {
      await using directory = await open();
      assert.equal(directory.holderOf(token), id);
      assert.equal(await directory.holderOf(refused), undefined);
    }
    days.push(today());
    const stored = await managed.tokensChangedSince(0);
    assert.ok(days.includes(stored.find(each => each.id === id)!.lastUsedDay!));
    assert.equal(stored.find(each => each.id === refusedId)!.lastUsedDay, null);
  });

  test('keeps to what it knows while the store does not answer, and says so once', async () => {
    let isDown = false;
    const faulty: TokenSource = {
      tokensChangedSince: changeNumber =>
        isDown ? Promise.reject(new Error('down')) : served.tokensChangedSince(changeNumber),
      recordTokenUse: (ids, day) => served.recordTokenUse(ids, day),
    };
    const { token, label, id } = await create();
    const causes: unknown[] = [];
    const directory = await TokenDirectory.open(faulty, cause => causes.push(cause));
    isDown = true;
    for (let count = 0; count < 3; count++) {
      assert.equal(await directory.holderOf(makeToken()), 'storeUnavailable');
    }
    assert.equal(directory.holderOf(token), id);
    assert.equal(causes.length, 1);
    await managed.revokeToken(label, Date.now());
    isDown = false;
    await assertRefusedSoon(directory, token);
    assert.equal(await directory.holderOf(makeToken()), undefined);
    await directory.close();
    assert.equal(causes.length, 1);
  });

  test('lets nobody wait for two looks into a store that does not answer', async () => {
    const looks: PromiseWithResolvers<never>[] = [];
    let isDown = false;
    const silent: TokenSource = {
      tokensChangedSince: changeNumber => {
        if (!isDown) return served.tokensChangedSince(changeNumber);
        looks.push(Promise.withResolvers<never>());
        return looks.at(-1)!.promise;
      },
      recordTokenUse: (ids, day) => served.recordTokenUse(ids, day),
    };
    const directory = await TokenDirectory.open(silent, () => {});
    isDown = true;
    const first = directory.holderOf(makeToken());
    await until('a look is under way', () => looks.length === 1);
    const duringLook = directory.holderOf(makeToken());
    looks[0]!.reject(new Error('no answer'));
    assert.equal(await duringLook, 'storeUnavailable');
    assert.equal(await first, 'storeUnavailable');
    assert.equal(looks.length, 1);
    isDown = false;
    await directory.close();
  });

  test('follows a standby that took over unnoticed, without the last changes', async () => {
    const made = (
      id: number,
      token: string,
      changeNumber: number,
      revokedAt: number | null,
    ): StoredToken => ({
      ...{ id, hash: hashToken(token), label: `token ${id}`, createdAt: 1, expiresAt: null },
      ...{ revokedAt, lastUsedDay: null, changeNumber },
    });
    const [old, lost] = [makeToken(), makeToken()];
    let tokens = [made(1, old, 1, null), made(2, lost, 2, null)];
    const source: TokenSource = {
      tokensChangedSince: async changeNumber => tokens.filter(each => each.changeNumber > changeNumber),
      recordTokenUse: async () => {},
    };
    const directory = await TokenDirectory.open(source, () => {});
    assert.deepEqual([directory.holderOf(old), directory.holderOf(lost)], [1, 2]);
    // The standby does not have the second token, and gives its number to a revocation.
    tokens = [made(1, old, 2, 5)];
    await Promise.all([assertRefusedSoon(directory, old), assertRefusedSoon(directory, lost)]);
    await directory.close();
  });

  test('refuses a token within 5 s whose revocation was given a number that was read before', async () => {
    const database = await under.newDatabase();
    const store = await openTokenStore(database);
    const [old, lost] = [makeToken(), makeToken()];
    for (const token of [old, lost]) {
      await store.createToken({ hash: hashToken(token), label: token, createdAt: 1, expiresAt: null });
    }
    const directory = await open(store);
    assert.deepEqual([directory.holderOf(old), directory.holderOf(lost)], [1, 2]);
    // As when a backup is put back, which lacks the second token.
    await under.sql(database, `DELETE FROM token WHERE id = 2`);
    const owner = await openTokenStore(database);
    assert.equal((await owner.revokeToken(old, 2))?.changeNumber, 2);
    await Promise.all([assertRefusedSoon(directory, old), assertRefusedSoon(directory, lost)]);
    await directory.close();
    for (const each of [owner, store]) await each.close();
  });

  test('reads many tokens in pieces, and all of them anew only where the fingerprint is another one', async () => {
    const tokens = Array.from({ length: TOKENS_AT_A_TIME_MAX + 2 }, makeToken);
    const stored = tokens.map((token, index) => ({
      ...{ id: index + 1, hash: hashToken(token), label: token, createdAt: 1, expiresAt: null },
      ...{ revokedAt: null, lastUsedDay: null, changeNumber: index + 1 },
    }));
    const looks: number[] = [];
    let fingerprint = 'one';
    let fingerprints = 0;
    const source: TokenSource = {
      tokensChangedSince: async changeNumber => {
        looks.push(changeNumber);
        return stored.slice(changeNumber, changeNumber + TOKENS_AT_A_TIME_MAX);
      },
      tokensFingerprint: async () => {
        fingerprints++;
        return fingerprint;
      },
      recordTokenUse: async ids => assert.ok(ids.length <= TOKENS_AT_A_TIME_MAX),
    };
    const directory = await open(source);
    assert.deepEqual(
      tokens.map(token => directory.holderOf(token)),
      stored.map(({ id }) => id),
    );
    await until('the fingerprint was asked for again', () => fingerprints === 2);
    assert.deepEqual(new Set(looks), new Set([0, TOKENS_AT_A_TIME_MAX, stored.length]));
    assert.equal(looks.filter(changeNumber => changeNumber === 0).length, 1);
    fingerprint = 'another';
    await until('all were read anew', () => looks.filter(changeNumber => changeNumber === 0).length === 2);
    await directory.close();
  });

  test('finds a new token while the store can be read and not written', async () => {
    const readOnly: TokenSource = {
      tokensChangedSince: changeNumber => served.tokensChangedSince(changeNumber),
      recordTokenUse: () => new Promise(() => {}),
    };
    const known = await create();
    const directory = await TokenDirectory.open(readOnly, () => {});
    assert.equal(directory.holderOf(known.token), known.id);
    const late = await create();
    assert.equal(await directory.holderOf(late.token), late.id);
    // Not closed in good order: the last use is written for ever.
    void directory.close();
  });
}

suite('a token of a service', { concurrency: true }, () => {
  async function post(url: string, token: string): Promise<number> {
    const response = await fetch(`${url}/plants`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: '{"id":1,"name":"A"}',
    });
    return response.status;
  }

  for (const under of ENGINES) {
    test(`that was revoked is refused within 5 s, and after a restart, in ${under.name}`, async () => {
      const database = await under.newDatabase();
      let token: string;
      {
        await using service = await startTestService({ database });
        token = service.token;
        assert.equal(await post(service.url, token), 200);
        const store = await openTokenStore(database);
        await store.revokeToken('first', Date.now());
        await store.close();
        const deadline = Date.now() + EFFECT_WITHIN_MS;
        while ((await post(service.url, token)) === 200) {
          assert.ok(Date.now() < deadline, `still accepted after ${EFFECT_WITHIN_MS} ms`);
          await wait(50);
        }
      }
      await using service = await startTestService({ database });
      assert.equal(service.firstToken, undefined);
      assert.equal(await post(service.url, token), 401);
    });
  }

  test('is nowhere in the files of the store and nowhere in the log', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'plant-store-tokens-'));
    const unknown = makeToken();
    const serve = await startServe(`sqlite:${join(folder, 'plants.db')}`);
    assert.equal(await post(serve.url, serve.token), 200);
    assert.equal(await post(serve.url, unknown), 401);

    const filesWhileServing = await filesIn(folder);
    const { exitCode, stdout, stderr } = await serve.stop('SIGTERM');
    assert.equal(exitCode, 0);
    assert.ok(stderr.includes(serve.token), 'shown once, to the person who started the service');
    const files = [...filesWhileServing, ...(await filesIn(folder))];
    assert.ok(
      files.some(file => file.includes(hashToken(serve.token))),
      'the hash is what is stored',
    );
    for (const text of [stdout, ...files]) {
      for (const token of [serve.token, unknown]) {
        assert.ok(!text.includes(token));
        // Nor without what every token begins with.
        assert.ok(!text.includes(token.slice('plant_'.length)));
      }
    }
    await rm(folder, { recursive: true });
  });

  async function filesIn(folder: string): Promise<string[]> {
    const names = await readdir(folder);
    return Promise.all(names.map(name => readFile(join(folder, name), 'latin1')));
  }
});

function today(): string {
  return new Date().toISOString().slice(0, 10);
}
