import assert from 'node:assert/strict';
import { createPublicKey, createSecretKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import Provider from 'oidc-provider';
import type { Clock } from '../../../src/core/clock.ts';
import { openidExtra } from '../../../src/extras/openid/openid.ts';
import type { OpenidSettings } from '../../../src/extras/openid/openid-settings.ts';
import { ControlledClock } from '../../harness/controlled-clock.ts';
import { listen } from '../../harness/loopback-server.ts';
import {
  AUDIENCE,
  type HandMadeProvider,
  makeKey,
  type ProviderKey,
  SCOPE,
  seconds,
  startProvider,
} from '../../harness/openid-provider.ts';
import { RawConnection, type RawResponse, requestBytes } from '../../harness/raw-connection.ts';
import {
  addToken,
  type RunningService,
  startTestService,
  type TestSettings,
} from '../../harness/running-service.ts';
import { scrape } from '../../harness/scrape.ts';
import { serverSideOf } from '../../harness/server-side.ts';
import { holdStore } from '../../harness/store-hold.ts';
import { enginesUnderTest, openTokens } from '../../harness/store-under-test.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

const engines = await enginesUnderTest();

/** A service that accepts tokens of this provider, and the reasons that it logs. */
async function startService(
  issuer: string,
  settings: TestSettings = {},
  differences: Partial<OpenidSettings> = {},
  clock?: Clock,
) {
  const reasons: string[] = [];
  const warn = (details: { err?: unknown; trace_id?: string }) =>
    reasons.push(`${details.trace_id} ${details.err}`);
  const log = { info: () => {}, warn, error: () => {} };
  const openid: OpenidSettings = {
    issuer,
    audience: AUDIENCE,
    scope: SCOPE,
    claims: [],
    jwks: undefined,
    type: 'at+jwt',
    ...differences,
  };
  return Object.assign(await startTestService({ log, ...settings, extras: [openidExtra(openid, clock)] }), {
    reasons,
  });
}

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';

/** On a new connection. */
async function send(service: RunningService, token: string): Promise<RawResponse> {
  using connection = await RawConnection.open(service.address.port);
  connection.write(requestBytes(token, { headers: { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` } }));
  return await connection.response();
}

async function warnsOfKeys({ opsUrl }: RunningService): Promise<boolean> {
  return /keys of .* cannot be read since 2/.test(await (await fetch(`${opsUrl}/readyz?verbose`)).text());
}

async function openConnections({ opsUrl }: RunningService): Promise<number | undefined> {
  return (await scrape(opsUrl)).values.get('plant_store_connections');
}

/** A control character, and a token of the service. */
const FOR_LOG = `\u009bplant_${'a'.repeat(30)}`;
/** Tokens that must be rejected, by the reason in the log. */
const ATTACKS: [what: string, reason: RegExp, make: (provider: HandMadeProvider) => Promise<string>][] = [
  ['algorithm none', /"alg"/, p => unsigned(p, 'none', '')],
  ['algorithm none with a signature', /"alg"/, p => unsigned(p, 'nOnE', 'AAAA')],
  [
    'HS256 with the public key as the secret',
    /"alg"/,
    p => p.token({}, { alg: 'HS256' }, publicKeyAsSecret(p)),
  ],
  ['another algorithm than that of the key', /no applicable key/, p => p.token({}, { alg: 'RS256' }, rsa)],
  ['a key by its address', /signature/, p => p.token({}, { jku: `${p.url}/attacker` }, stranger)],
  ['a certificate by its address', /signature/, p => p.token({}, { x5u: `${p.url}/attacker` }, stranger)],
  ['a key in the header', /signature/, p => p.token({}, { jwk: stranger.publicJwk }, stranger)],
  [
    'a critical extension, with a text for the log',
    /Parameter "\?plant_…" is not recognized/,
    p => p.token({}, { crit: [FOR_LOG], [FOR_LOG]: 1 }),
  ],
  ['a critical extension that the library knows', /crit/, p => p.token({}, { crit: ['b64'], b64: true })],
  ['the type of an ID token', /"typ" is "JWT", but should be at\+jwt/, p => p.token({}, { typ: 'JWT' })],
  ['Ed25519 with a key for ES256', /no applicable key/, p => p.token({}, { alg: 'Ed25519' }, edwards)],
  ['a repeated header parameter', /"alg" is repeated/, p => repeated(p, '"alg":"none",', '')],
  ['a repeated claim', /"sub" is repeated/, p => repeated(p, '', '"sub":"eve",')],
  ['more than 8 KiB', /too long/, p => p.token({ padding: 'a'.repeat(8192) })],
  ['no audience', /"aud" is absent, but should be https:\/\/plants/, p => p.token({ aud: undefined })],
  [
    'a list of other audiences',
    /"aud" is \["a","https:\S+evil"\], but should be https:\/\/plants/,
    p => p.token({ aud: ['a', `${AUDIENCE}.evil`] }),
  ],
  [
    'another issuer, with its own key',
    /"iss" is "https:\/\/other.example", but should be http:/,
    p => p.token({ iss: 'https://other.example' }, { kid: 'unknown' }),
  ],
  ['an issuer in the log', /"iss" is "eyJ…", but/, p => p.token({ iss: `eyJ${'a'.repeat(99)}` })],
  ['no subject', /"sub"/, p => p.token({ sub: undefined })],
  ['a subject with a line break', /"sub"/, p => p.token({ sub: 'alice\nadmin' })],
  ...[
    '',
    ' alice',
    'alice ',
    '\u00a0alice',
    'alice\u034f',
    'ali\u3164ce',
    'alice\ufe0f',
    'alice\u{e0041}',
  ].map((sub): (typeof ATTACKS)[number] => [
    `a subject that looks like another: ${encodeURI(sub)}`,
    /"sub"/,
    p => p.token({ sub }),
  ]),
  ['no expiry', /"exp"/, p => p.token({ exp: undefined })],
  ['an expiry in text', /"exp"/, p => p.token({ exp: String(seconds(300)) })],
  ['an expiry of 1e300', /"exp"/, p => p.token({ exp: 1e300 })],
  ['an expiry 31 s ago', /"exp"/, p => p.token({ exp: seconds(-31) })],
  ['a start in 40 s', /"nbf"/, p => p.token({ nbf: seconds(40) })],
  ['no scope', /"scope"/, p => p.token({ scope: undefined })],
  ['a scope that contains the name', /"scope"/, p => p.token({ scope: `${SCOPE}2 x${SCOPE}` })],
];

const rsa = await makeKey('first', 'RS256');
const edwards = await makeKey('first', 'Ed25519');
const stranger = await makeKey('first');

async function unsigned(p: HandMadeProvider, alg: string, signature: string): Promise<string> {
  const header = Buffer.from(JSON.stringify({ alg, typ: 'at+jwt', kid: 'first' })).toString('base64url');
  return `${header}.${(await p.token()).split('.')[1]}.${signature}`;
}

function publicKeyAsSecret({ keys }: HandMadeProvider): ProviderKey {
  const publicKey = createPublicKey({ key: keys[0]!.publicJwk, format: 'jwk' });
  const pem = publicKey.export({ type: 'spki', format: 'pem' });
  return { ...keys[0]!, privateKey: createSecretKey(Buffer.from(pem)) };
}

/** A signed token whose parts begin with more members. */
async function repeated(p: HandMadeProvider, header: string, claims: string): Promise<string> {
  const [first, second] = (await p.token()).split('.').map(each => Buffer.from(each, 'base64url').toString());
  const parts = [`{${header}${first!.slice(1)}`, `{${claims}${second!.slice(1)}`];
  const input = parts.map(each => Buffer.from(each).toString('base64url')).join('.');
  const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
  const { privateKey } = p.keys[0]!;
  const signature = await crypto.subtle.sign(algorithm, privateKey as CryptoKey, Buffer.from(input));
  return `${input}.${Buffer.from(signature).toString('base64url')}`;
}

// A service logs 20 reasons at once.
for (const attacks of [ATTACKS.slice(0, 14), ATTACKS.slice(14, 28), ATTACKS.slice(28)])
  test(`forged tokens are rejected, and the log says why (from ${attacks[0]![0]})`, async () => {
    await using provider = await startProvider();
    await using service = await startService(provider.url);
    for (const [what, reason, make] of attacks) {
      const { status, headers, body } = await send(service, await make(provider));
      const challenge = headers.get('www-authenticate');
      assert.match(`${status} ${challenge} ${body}`, /^401 .*"invalid_token".*"error":40102/, what);
      const [logged, ...others] = service.reasons.splice(0);
      assert.match(logged!, reason, what);
      assert.ok(logged!.startsWith(TRACE_ID) && others.length === 0, what);
    }
    assert.equal((await send(service, await provider.token())).status, 200);
    assert.ok(!provider.requests.includes('/attacker'));
  });

test('forged tokens are rejected, too, if a token has neither type nor audience', async () => {
  await using provider = await startProvider();
  const claims = [{ name: 'client_id', value: 'app', isPrefix: false }];
  const settings = { type: undefined, audience: undefined, scope: undefined, claims };
  await using service = await startService(provider.url, {}, settings);
  const valid = { aud: undefined, scope: undefined, client_id: 'app' };
  const withoutType: HandMadeProvider = {
    ...provider,
    token: (differences, header, key) =>
      provider.token({ ...valid, ...differences }, { typ: undefined, ...header }, key),
  };
  for (const [what, reason, make] of ATTACKS)
    if (!/aud|scope|typ"/.test(reason.source))
      assert.equal((await send(service, await make(withoutType))).status, 401, what);
  assert.equal((await send(service, await withoutType.token())).status, 200);
});

test('valid tokens in each allowed form are accepted, with keys from a file', async () => {
  await using provider = await startProvider();
  const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'];
  provider.keys = await Promise.all(algorithms.map(alg => makeKey(alg, alg)));
  const file = join(testFolder(), 'keys.json');
  writeFileSync(file, JSON.stringify({ keys: provider.keys.map(({ publicJwk }) => publicJwk) }));
  await using service = await startService(provider.url, {}, { jwks: file });
  const tokens = [
    ...provider.keys.map(key => provider.token({}, {}, key)),
    provider.token({ aud: ['a', AUDIENCE], scope: `read ${SCOPE}` }),
    provider.token({ exp: seconds(-20), nbf: seconds(20) }),
    provider.token({}, { typ: 'application/at+jwt' }),
    provider.token({ scope: undefined, scp: `read ${SCOPE}` }),
    provider.token({ scope: undefined, scp: [SCOPE] }),
    provider.token({ scope: undefined, roles: [SCOPE] }),
    provider.token({ scope: undefined, permissions: ['read', SCOPE] }),
  ];
  for (const token of tokens)
    assert.equal((await send(service, await token)).status, 200, service.reasons.join());
  assert.deepEqual(provider.requests, []);
});

test('a real provider: its tokens are accepted, and those for another service are not', async () => {
  const server = createServer();
  await using address = await listen(server);
  const client = { client_id: 'app', client_secret: 'secret', redirect_uris: [], response_types: [] };
  const provider = new Provider(address.url, {
    clients: [{ ...client, grant_types: ['client_credentials'] }],
    features: {
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context: unknown, audience: string) => ({
          scope: SCOPE,
          audience,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
  server.on('request', provider.callback());
  await using service = await startService(address.url);
  for (const [resource, status] of [
    [AUDIENCE, 200],
    ['https://other.example', 401],
  ] as const) {
    const body = new URLSearchParams({ grant_type: 'client_credentials', scope: SCOPE, resource });
    const headers = { Authorization: `Basic ${btoa('app:secret')}` };
    const response = await fetch(`${address.url}/token`, { method: 'POST', headers, body });
    const { access_token: token } = (await response.json()) as { access_token: string };
    assert.equal((await send(service, token)).status, status, service.reasons.join());
  }
});

for (const under of engines) {
  test(`a subject is one row, which names the plants and can be revoked, on ${under.name}`, async () => {
    await using provider = await startProvider();
    const database = await under.newDatabase();
    await using stack = new AsyncDisposableStack();
    const connections: RawConnection[] = [];
    const reasons: string[][] = [];
    // Two services cannot share a file.
    for (let count = under.name === 'SQLite' ? 1 : 2; count > 0; count--) {
      const service = stack.use(await startService(provider.url, { database }));
      connections.push(stack.use(await RawConnection.open(service.address.port)));
      reasons.push(service.reasons);
    }
    const assertAll = async (claims: object, expected: number): Promise<void> => {
      const token = await provider.token(claims);
      for (const connection of connections) connection.write(requestBytes(token));
      for (const each of connections) assert.equal((await each.response()).status, expected);
    };
    for (const iat of [1, 2, 1]) await assertAll({ iat }, 200);
    const label = `${provider.url} alice`;
    const query = 'SELECT DISTINCT label FROM plant_revision JOIN token ON token.id = recorded_by';
    assert.deepEqual(await under.sql(database, query), [{ label }]);
    await using store = await openTokens(database);
    assert.equal((await store.tokenTable.tokens()).filter(each => each.label === label).length, 1);
    // The row has the hash of the label, but nobody can send that as a token.
    for (const connection of connections) {
      connection.write(requestBytes(label));
      assert.equal((await connection.response()).status, 401);
    }
    await store.tokenTable.revokeToken(label, Date.now());
    for (const connection of connections)
      await until('it is rejected', async () => {
        connection.write(requestBytes(await provider.token()));
        return (await connection.response()).status === 401;
      });
    await assertAll({ sub: 'bob' }, 200);
    await assertAll({ iat: 3 }, 401);
    for (const each of reasons) assert.match(each.pop()!, / alice is revoked/);
  });
}

test('keys are replaced under load, and no valid token is rejected', async () => {
  await using provider = await startProvider();
  await using service = await startService(provider.url);
  let isOver = false;
  let sent = 0;
  const load = Array.from({ length: 8 }, async () => {
    using connection = await RawConnection.open(service.address.port);
    while (!isOver) {
      connection.write(requestBytes(await provider.token({ jti: String(sent++) })));
      const { status, body } = await connection.response();
      assert.equal(status, 200, `${body} ${service.reasons.join()}`);
    }
  });
  const first = provider.keys[0]!;
  const second = await makeKey('second');
  for (const keys of [[first], [second, first], [second]]) {
    provider.keys = keys;
    const before = sent;
    await Promise.race([Promise.all(load), until('more are sent', () => sent > before + 50)]);
  }
  isOver = true;
  await Promise.all(load);
  assert.equal(provider.requests.filter(path => path === '/keys').length, 2);
});

test('new subjects do not wait one after the other for a store that does not respond', async () => {
  await using provider = await startProvider();
  await using service = await startService(provider.url);
  const subjects = 40;
  const bearers = await Promise.all(
    Array.from({ length: subjects }, (_, sub) => provider.token({ sub: `${sub}` })),
  );
  using _held = holdStore(service.database);
  const beganAt = performance.now();
  const responses = await Promise.all(bearers.map(bearer => send(service, bearer)));
  assert.deepEqual(
    responses.map(({ status }) => status),
    bearers.map(() => 503),
  );
  // One after the other, each would wait for 2 s.
  assert.ok(performance.now() - beganAt < (subjects * 2_000) / 2);
});

const NO_KEYS = JSON.stringify({ keys: [] });

test('while the provider is away, its last keys are used for a day', async () => {
  await using provider = await startProvider();
  const clock = new ControlledClock();
  await using service = await startService(provider.url, {}, {}, clock);
  assert.equal((await send(service, await provider.token())).status, 200);
  provider.keysResponse = { body: NO_KEYS };
  assert.equal((await send(service, await provider.token({}, { kid: 'unknown' }))).status, 503);
  let hoursPassed = 0;
  for (const hours of [1, 23, 24]) {
    clock.advance((hours - hoursPassed) * 3_600_000);
    hoursPassed = hours;
    const token = await provider.token({ exp: seconds(hours * 3_600 + 300) });
    const { status, body } = await send(service, token);
    assert.equal(status, hours < 24 ? 200 : 503, `${hours} ${body}`);
    assert.equal(await warnsOfKeys(service), hours === 24);
  }
  assert.match(service.reasons.join(), /the provider has no keys/);
});

test('after a rotation, a token with the new key is not checked until the keys may be read', async () => {
  await using provider = await startProvider();
  const clock = new ControlledClock();
  await using service = await startService(provider.url, {}, {}, clock);
  const unknown = (kid: string, jti = 0) => provider.token({ jti }, { kid });
  const assertStatus = async (token: string, expected: number): Promise<void> => {
    const { status, headers, body } = await send(service, token);
    assert.match(`${status} ${body}`, expected === 503 ? /^503 .*50302/ : new RegExp(`^${expected} `));
    assert.equal(headers.has('retry-after'), status === 503);
  };
  await assertStatus(await provider.token(), 200);
  // A stranger takes the only read of these 30 s.
  await assertStatus(await unknown('stranger'), 401);
  const old = await provider.token({ sub: 'bob' });
  provider.keys = [await makeKey('second')];
  let tokens = 0;
  const rotated = () => provider.token({ jti: ++tokens });
  const strangers = ['a', 'b', 'c', 'a'];
  for (const stranger of strangers) await assertStatus(await unknown(stranger), 503);
  await assertStatus(await rotated(), 503);
  clock.advance(29_999);
  await assertStatus(await rotated(), 503);
  await assertStatus(old, 200);
  clock.advance(1);
  // The keys are read because of one of them, and then known to all.
  await assertStatus(await unknown('d'), 401);
  await assertStatus(await rotated(), 200);
  // These arrived before that read, so it was theirs, too.
  for (const stranger of new Set(strangers)) await assertStatus(await unknown(stranger, 1), 401);
  await assertStatus(await unknown('e', ++tokens), 503);
  // A failed read counts, and proves nothing.
  provider.keysResponse = { status: 500 };
  clock.advance(30_000);
  await assertStatus(await unknown('e', ++tokens), 503);
  provider.keysResponse = {};
  clock.advance(29_999);
  await assertStatus(await unknown('e', ++tokens), 503);
  clock.advance(1);
  await assertStatus(await unknown('e', ++tokens), 401);
  const reads = provider.requests.filter(path => path === '/keys').length;
  assert.equal(reads, 5);
  provider.keys = [await makeKey('third')];
  clock.advance(3_600_000);
  await until('the keys are read without a token', () => provider.requests.length === 2 * (reads + 1));
});

test('tokens of a withdrawn key get 401 after the keys were read, and raise no alert of overload', async () => {
  await using provider = await startProvider();
  const clock = new ControlledClock();
  await using service = await startService(provider.url, {}, {}, clock);
  let tokens = 0;
  const withdrawn = await makeKey('withdrawn');
  const statusOf = async (token: string) => (await send(service, token)).status;
  const first = await provider.token({ exp: seconds(3_600) }, {}, withdrawn);
  assert.equal(await statusOf(first), 401);
  for (let second = 0; second < 70; second++) {
    clock.advance(1_100);
    const other = await provider.token({ exp: seconds(3_600), jti: ++tokens }, {}, withdrawn);
    assert.deepEqual([await statusOf(first), await statusOf(other)], [401, 401], `${second}`);
  }
  assert.equal(await statusOf(await provider.token({}, { kid: 'stranger' })), 503);
  const results = (await scrape(service.opsUrl)).values;
  const busy = results.get('plant_store_requests_total{status="503",error="50301",result="busy"}');
  assert.equal(busy, 0);
  assert.equal(provider.requests.filter(path => path === '/keys').length, 4);
});

for (const kid of ['first', undefined])
  test(`a key is replaced by one ${kid ? 'with the same id' : 'without an id'}`, async () => {
    await using provider = await startProvider();
    const clock = new ControlledClock();
    const newKey = async (): Promise<ProviderKey> => {
      const { privateKey, publicJwk } = await makeKey('first');
      return { privateKey, publicJwk: { ...publicJwk, kid } as ProviderKey['publicJwk'] };
    };
    const old = await newKey();
    provider.keys = [old];
    await using service = await startService(provider.url, {}, {}, clock);
    assert.equal((await send(service, await provider.token())).status, 200);
    provider.keys = [await newKey()];
    assert.equal((await send(service, await provider.token())).status, 200);
    const { length } = provider.requests;
    for (const jti of [1, 2]) {
      clock.advance(14_999);
      assert.equal((await send(service, await provider.token({ jti }, {}, old))).status, 401);
    }
    assert.equal(provider.requests.length, length, 'wrong signatures cause no more reads than unknown keys');
  });

test('a token is validated again after the wall clock was set', async () => {
  await using provider = await startProvider();
  const exp = seconds(3_600);
  const clock = new ControlledClock();
  const now = clock.wallNow();
  clock.setWall(now + 7_200_000);
  await using service = await startService(provider.url, {}, {}, clock);
  /** The token cache, too, needs a refresh after the clock was set. */
  const statusSoon = async (token: string): Promise<number> => {
    clock.advance(2_000);
    await until(
      'the token cache is current',
      async () => (await send(service, service.token)).status === 200,
    );
    return (await send(service, token)).status;
  };
  const token = await provider.token({ exp });
  assert.equal((await send(service, token)).status, 401, 'the machine starts with a wrong clock');
  clock.setWall(now);
  assert.equal(await statusSoon(token), 200, 'the clock is right');

  clock.setWall(now - 3_600_000);
  assert.equal(await statusSoon(token), 200);
  provider.keys = [await makeKey('second')];
  clock.advance(60_000);
  assert.equal(await statusSoon(await provider.token({ exp })), 200, 'the keys were read');
  assert.notEqual((await send(service, token)).status, 200, 'the provider has withdrawn its key');
});

test('a flood of unknown keys reads the keys once, and tokens of known ones are accepted', async () => {
  await using provider = await startProvider();
  await using service = await startService(provider.url);
  assert.equal((await send(service, await provider.token())).status, 200);
  provider.requests.length = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  provider.keysResponse = { status: 500, after: promise };
  using stack = new DisposableStack();
  const flood: RawConnection[] = [];
  for (let index = 0; index < 300; index++) {
    flood.push(stack.use(await RawConnection.open(service.address.port)));
    flood.at(-1)!.write(requestBytes(await provider.token({}, { kid: `unknown ${index}` })));
  }
  for (const token of [await provider.token(), service.token])
    assert.equal((await send(service, token)).status, 200);
  resolve();
  for (const connection of flood) assert.equal((await connection.response()).status, 503);
  assert.equal((await send(service, await provider.token({}, { kid: 'unknown' }))).status, 503);
  assert.deepEqual(provider.requests, ['/.well-known/openid-configuration', '/keys']);
});

/** Fewer than may wait for the service to accept them, by default 511. */
const OPENED_AT_A_TIME = 100;

for (const hasKeys of [true, false])
  test(`300 connections, reset while a token is checked, are closed, ${hasKeys ? 'with' : 'without'} keys`, async () => {
    await using provider = await startProvider();
    const { promise: keysMayCome, resolve: sendKeys } = Promise.withResolvers<void>();
    if (!hasKeys) provider.keysResponse = { status: 500, after: keysMayCome };
    await using service = await startService(provider.url);
    const bearers = await Promise.all(
      Array.from({ length: 300 }, (_, jti) => provider.token({ jti }, {}, stranger)),
    );
    using held = holdStore(service.database);
    const connections: RawConnection[] = [];
    const serverSides: Socket[] = [];
    while (connections.length < bearers.length) {
      const next = bearers.slice(connections.length, connections.length + OPENED_AT_A_TIME);
      const opened = await Promise.all(next.map(() => RawConnection.open(service.address.port)));
      for (const [index, connection] of opened.entries())
        connection.write(Buffer.concat([service.token, next[index]!].map(token => requestBytes(token))));
      await until('all are read', () => opened.every(each => serverSideOf(each)?.bytesRead));
      connections.push(...opened);
      serverSides.push(...opened.map(each => serverSideOf(each)!));
    }
    for (const { socket } of connections) socket.resetAndDestroy();
    // The responses to the first requests meet the resets.
    held[Symbol.dispose]();
    await until('the resets are noticed', () => serverSides.every(({ closed }) => closed));
    const last = send(service, await provider.token());
    sendKeys();
    assert.equal((await last).status, hasKeys ? 200 : 503);
    await until('none is open', async () => (await openConnections(service)) === 0);
  });

test('a subject that can have no row gets a final error, and operators a warning', async () => {
  await using provider = await startProvider();
  await using service = await startService(provider.url);
  const statusOf = async (sub: string) => (await send(service, await provider.token({ sub }))).status;
  const warnings = async () => await (await fetch(`${service.opsUrl}/readyz?verbose`)).text();
  await addToken(service.database, `${provider.url} carol`);
  assert.equal(await statusOf('carol'), 401);
  assert.match(service.reasons.pop()!, /a token made with `token create` has the label http\S+ carol/);
  assert.match(
    await warnings(),
    /401 responses, because a token made with `token create` has the label of its subject/,
  );
  assert.equal(await statusOf('alice'), 200);

  // Three tokens are there: first, carol and alice.
  using database = new DatabaseSync(service.database.replace('sqlite:', ''));
  database.exec(`WITH RECURSIVE n(n) AS (SELECT 4 UNION ALL SELECT n + 1 FROM n WHERE n < 10000)
    INSERT INTO token (id, hash, label, created_at, change_number) SELECT n, n, n, 1, 10000 + n FROM n`);
  await until('it is full', async () => /the store has 10000 valid tokens/.test(await warnings()));
  assert.equal(await statusOf('bob'), 401);
  assert.match(service.reasons.pop()!, /bob is new, and the store has 10000 valid tokens/);
  assert.match(await warnings(), /new subjects get 401 responses, because the store has 10000 valid tokens/);
  assert.equal(await statusOf('alice'), 200);
  database.exec('UPDATE token SET revoked_at = 1, change_number = 20001 WHERE id = 4');
  await until('a revoked token makes room', async () => (await statusOf('bob')) === 200);
  assert.equal(await statusOf('dave'), 401);
});

test('operators learn first that the keys cannot be read, since this concerns every subject', async () => {
  await using provider = await startProvider();
  const clock = new ControlledClock();
  await using service = await startService(provider.url, {}, {}, clock);
  await addToken(service.database, `${provider.url} carol`);
  assert.equal((await send(service, await provider.token({ sub: 'carol' }))).status, 401);
  assert.equal(await warnsOfKeys(service), false);
  provider.keysResponse = { body: NO_KEYS };
  // The keys are too old then, but the conflict is still new.
  clock.setWall(clock.wallNow() + 24 * 3_600_000);
  const token = await provider.token({ exp: seconds(25 * 3_600) });
  assert.equal((await send(service, token)).status, 503);
  assert.equal(await warnsOfKeys(service), true);
});

const BAD_DOCUMENTS: [reason: RegExp, response: HandMadeProvider['keysResponse'], issuerEnd?: string][] = [
  [/longer than 65536 bytes/, { body: NO_KEYS.padEnd(65_537) }],
  [/fetch failed/, { status: 302, location: '/moved' }],
  [/malformed/, { body: '[]' }],
  [/the provider has no keys/, { body: NO_KEYS }],
  [/names another issuer/, {}, '/'],
];

for (const [reason, response, issuerEnd = ''] of BAD_DOCUMENTS) {
  test(`without usable keys (${reason}), a token gets 503, and own tokens stay valid`, async () => {
    await using provider = await startProvider();
    provider.keysResponse = response;
    await using service = await startService(provider.url + issuerEnd);
    const { status, body } = await send(service, await provider.token({ iss: provider.url + issuerEnd }));
    assert.match(`${status} ${body}`, /^503 .*"error":50302/);
    assert.match(service.reasons.join(), reason);
    assert.ok(await warnsOfKeys(service));
    assert.equal((await send(service, service.token)).status, 200);
    assert.ok(!provider.requests.includes('/moved'));
  });
}
