import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { openApiJson } from '../../src/client/openapi.ts';
import { makeToken } from '../../src/core/tokens/token.ts';
import {
  ask,
  RawConnection,
  type RawResponse,
  type RequestParts,
  requestBytes,
} from '../harness/raw-connection.ts';
import {
  ACCEPTED_REQUESTS,
  authorization,
  BODY_MAX_BYTES,
  makeTokensKnown,
  NOT_HTTP,
  REJECTED_REQUESTS,
  type RequestCase,
} from '../harness/request-cases.ts';
import { assertCommonHeaders, assertErrorResponse, assertHardened } from '../harness/response-assertions.ts';
import { startTestService } from '../harness/running-service.ts';
import { assertClosed, ConnectionTarget, GHOST_ID, plantJson } from './connection-target.ts';

const settings = { bodyBytesMax: BODY_MAX_BYTES, opsHosts: ['plants.example', 'a'] };
const target = await ConnectionTarget.start(settings);
await makeTokensKnown(target.service.database);

/** Sends a case between two plain creates, in one write. */
async function assertCase({
  bytes,
  error,
  closes = false,
  headers = {},
  isHead = false,
}: RequestCase): Promise<void> {
  using connection = await target.open();
  const ids = [target.nextId(), target.nextId(), target.nextId()] as const;
  const own = bytes(target.service.token, plantJson(error === undefined ? ids[1] : GHOST_ID));
  connection.write(Buffer.concat([target.request(ids[0]), own, target.request(ids[2])]));
  await target.assertCreated(connection, ids[0]);
  if (error === undefined) await target.assertCreated(connection, ids[1]);
  else {
    const response = await connection.response(!isHead);
    if (!isHead) assertErrorResponse(response, error);
    else assert.equal(response.status, Math.floor(error / 100));
    assertCommonHeaders(response);
    for (const [field, value] of Object.entries(headers)) assert.equal(response.headers.get(field), value);
    assert.ok(!response.body.includes(target.service.token));
  }
  if (!closes) {
    await target.assertCreated(connection, ids[2]);
    connection.finish();
  }
  await assertClosed(connection);
}

const RULES: Record<string, RequestCase[]> = {
  ...REJECTED_REQUESTS,
  'requests in another valid form are accepted': ACCEPTED_REQUESTS,
  'invalid HTTP/1.1 gets a 400 response and closes the connection': NOT_HTTP,
};
for (const [rule, cases] of Object.entries(RULES)) {
  // Concurrent, since the service discards bytes for two seconds after some of these.
  suite(rule, { concurrency: true }, () => {
    for (const each of cases) {
      const what = each.what.slice(0, 100);
      test(`${what} → ${each.error ?? 200}`, () => assertCase(each));
    }
  });
}

test('the first error in this order is reported: path, method, credential, media type, size, JSON, shape, store', async () => {
  await using strict = await startTestService({ bodyBytesMax: BODY_MAX_BYTES, repeatedIdRule: 'reject' });
  const send = (parts: RequestParts): Promise<RawResponse> => ask(strict.address.port, strict.token, parts);
  assert.equal((await send({ body: '{"id":1,"name":"First"}' })).status, 200);
  const good = { Authorization: `Bearer ${strict.token}` };
  /** Each step repairs the reported error and leaves all that follow. */
  const steps: [repair: RequestParts, error: number][] = [
    [
      {
        target: '/plant',
        method: 'PUT',
        body: '{'.repeat(BODY_MAX_BYTES + 1),
        headers: { Authorization: null, 'Content-Encoding': 'gzip', 'Content-Type': 'text/plain' },
      },
      40401,
    ],
    [{ target: '/plants' }, 40501],
    [{ method: 'POST' }, 40101],
    [authorization(`Bearer ${makeToken()}`), 40102],
    [{ headers: good }, 41502],
    [{ headers: { 'Content-Encoding': null } }, 41501],
    [{ headers: { 'Content-Type': 'application/json' } }, 41301],
    [{ body: '{"id":1.5,"name":' }, 40001],
    [{ body: '{"id":1.5,"name":"Other"}' }, 40002],
    [{ body: '{"id":1,"name":"Other"}' }, 40003],
  ];
  let parts: RequestParts = {};
  for (const [repair, error] of steps) {
    parts = { ...parts, ...repair, headers: { ...parts.headers, ...repair.headers } };
    assertErrorResponse(await send(parts), error);
  }
});

test('/openapi.json is the description, without a credential; HEAD has its headers and no body', async () => {
  const parts = { target: '/openapi.json', ...authorization(null), body: '' };
  const { address, token } = target.service;
  const response = await ask(address.port, token, { ...parts, method: 'GET' });
  assert.equal(response.status, 200);
  assertCommonHeaders(response);
  assert.equal(response.body, openApiJson());
  const bodiless = await ask(address.port, token, { ...parts, method: 'HEAD' });
  assert.deepEqual(
    [bodiless.status, bodiless.headers.get('content-length')],
    [200, String(response.body.length)],
  );
});

test('every response of the operations listener has the security headers, and it accepts no plants', async () => {
  const { token, opsAddress } = target.service;
  const get = (path: string): Buffer => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  const requests: [status: number, bytes: Buffer][] = [
    ...['/livez', '/readyz', '/metrics'].map((path): [number, Buffer] => [200, get(path)]),
    [404, requestBytes(token, { body: plantJson(GHOST_ID), headers: { Expect: 'flowers' } })],
    [404, get('/%zz')],
    [400, Buffer.from('junk\r\n\r\n')],
    [431, get(`/${'a'.repeat(20_000)}`)],
  ];
  for (const [status, bytes] of requests) {
    using connection = await RawConnection.open(opsAddress.port);
    connection.write(bytes);
    const response = await connection.response();
    assert.equal(response.status, status);
    assertHardened(response.headers);
  }
});

/** Host fields and the response of the operations listener: 200 or the error number. */
const OPS_HOSTS: [response: 200 | 40000 | 42101, hosts: (string | string[] | null)[], version?: string][] = [
  [200, ['localhost', 'LocalHost.', 'localhost:8081', 'plants.localhost:1']],
  [200, ['127.0.0.1', '127.0.0.1.:8081', '10.0.0.7:9090', '[::1]', '[2001:DB8::1]:8081']],
  [200, ['plants.internal', 'PLANTS.Internal.:8081', 'monitored.example']],
  // The host in --ops: systems resolve it to 127.0.0.1, which a browser would send.
  [200, ['127.1:8081']],
  [200, [null, 'localhost'], '1.0'],
  [42101, ['pages.example', 'pages.example:8081', 'localhost.pages.example', 'notlocalhost', 'localhost..']],
  [42101, ['127.0.0.1.pages.example', '[pages.example]', '::1', '127.2', '']],
  [42101, ['a.plants.internal', 'internal', 'plants.internal.pages.example', 'plants.internal@a', 'a b']],
  [42101, ['pages.example'], '1.0'],
  [40000, [null, ['localhost', 'localhost'], ['localhost', 'pages.example']]],
];

test('the operations listener accepts only addresses, names of this machine and configured names as Host', async () => {
  await using service = await startTestService({
    ops: { host: '127.1', port: 0 },
    opsHosts: ['plants.internal', 'Monitored.example.'],
  });
  for (const [expected, hosts, version] of OPS_HOSTS) {
    for (const host of hosts) {
      const response = await ask(service.opsAddress.port, service.token, {
        method: 'GET',
        target: '/livez',
        headers: { Host: host },
        body: '',
        ...(version !== undefined && { version }),
      });
      const context = `Host: ${host}: ${response.body}`;
      assertCommonHeaders(response);
      const body = JSON.parse(response.body);
      if (expected === 200) assert.deepEqual([response.status, body], [200, { status: 'live' }], context);
      else assert.deepEqual([response.status, body.error], [Math.floor(expected / 100), expected], context);
      if (expected === 42101) assert.match(body.message, /^the name in the Host field .* --ops-host NAME$/);
    }
  }
});
