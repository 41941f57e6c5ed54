import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { hashToken } from '../src/auth/token.ts';
import { openApiJson } from '../src/contract/openapi.ts';
import { openReader, openTokenStore } from '../src/store/open-store.ts';
import { assertCommonHeaders, assertErrorAnswer, assertPlantAnswer } from './harness/answer-assertions.ts';
import {
  chunked,
  type RawAnswer,
  RawConnection,
  type RequestParts,
  requestBytes,
} from './harness/raw-connection.ts';
import { authorization, BODY_BYTES_MAX, contentType, REFUSED_REQUESTS, TOKENS } from './refused-requests.ts';
import { type RunningService, startTestService } from './running-service.ts';

let service: RunningService;
/** The requests that are refused have the id 1. */
let lastId = 1n;
/** Every revision that was answered as stored: `id:revision`. */
const kept = new Set<string>();

before(async () => {
  service = await startTestService({ bodyBytesMax: BODY_BYTES_MAX });
  const store = await openTokenStore(service.database);
  const now = Date.now();
  await store.createToken({
    hash: hashToken(TOKENS.expired),
    label: 'expired',
    createdAt: now,
    expiresAt: now,
  });
  await store.createToken({
    hash: hashToken(TOKENS.revoked),
    label: 'revoked',
    createdAt: now,
    expiresAt: null,
  });
  await store.revokeToken('revoked', now);
  await store.close();
});
after(() => service[Symbol.asyncDispose]());

/** Sends one request on a connection of its own. */
async function ask(
  parts: RequestParts,
  port = service.address.port,
  token = service.token,
): Promise<RawAnswer> {
  using connection = await RawConnection.open(port);
  connection.write(requestBytes(token, parts));
  const answer = await connection.answer(parts.method !== 'HEAD');
  assert.equal(connection.unread, '', 'one request, one answer');
  if (answer.status === 200 && answer.headers.has('plant-id') && port === service.address.port)
    kept.add(`${answer.headers.get('plant-id')}:${answer.headers.get('plant-revision')}`);
  return answer;
}

for (const [rule, requests] of Object.entries(REFUSED_REQUESTS)) {
  suite(rule, () => {
    for (const { what, parts, error, headers = {} } of requests) {
      test(`${what} → ${error}`, async () => {
        const answer = await ask(parts);
        if (parts.method === 'HEAD') {
          assert.equal(answer.status, Math.floor(error / 100));
          assertCommonHeaders(answer);
        } else {
          assertErrorAnswer(answer, error);
        }
        for (const [field, value] of Object.entries(headers))
          assert.equal(answer.headers.get(field), value, field);
        assert.ok(!answer.body.includes(service.token));
      });
    }
  });
}

test('the message names every fault of a body, and repeats none of its values', async () => {
  const { body } = await ask({ body: '{"id":1.5,"name":7,"tag":null,"secret":"s3cr3t"}' });
  assert.deepEqual(JSON.parse(body), {
    error: 40002,
    message:
      'id must be an integer from -9223372036854775808 to 9223372036854775807; name must be a string; tag must be a string',
  });
});

suite('a request that differs in form only is taken', () => {
  const forms: [what: string, parts: (body: string) => RequestParts][] = [
    ['a query', body => ({ body, target: '/plants?a=b' })],
    ['an empty query', body => ({ body, target: '/plants?' })],
    ['the path in percent-encoding', body => ({ body, target: '/%70lants' })],
    ['bearer in lower case', body => ({ body, ...authorization(`bearer ${service.token}`) })],
    ['two spaces behind Bearer', body => ({ body, ...authorization(`Bearer  ${service.token}`) })],
    ['application/json in capitals', body => ({ body, ...contentType('APPLICATION/JSON') })],
    ['charset=utf-8', body => ({ body, ...contentType('application/json; charset=utf-8') })],
    ['charset="UTF-8" in quotes', body => ({ body, ...contentType('application/json;charset="UTF-8"') })],
    ['another parameter', body => ({ body, ...contentType('application/json; profile=a') })],
    ['a body in chunks', body => chunked(body)],
    ['as many bytes as the limit allows', body => ({ body: body.padEnd(BODY_BYTES_MAX) })],
    ['as many bytes in chunks', body => chunked(body.padEnd(BODY_BYTES_MAX))],
    ['an Accept that wants no JSON', body => ({ body, headers: { Accept: 'text/html' } })],
    ['an Origin', body => ({ body, headers: { Origin: 'https://plants.example' } })],
    ['a Cookie', body => ({ body, headers: { Cookie: 'a=b' } })],
  ];
  for (const [what, parts] of forms) {
    test(what, async () => {
      const id = ++lastId;
      const answer = await ask(parts(`{"id":${id},"name":"Ipe","tag":""}`));
      assertPlantAnswer(answer, { name: 'Ipe', tag: '' });
      assert.equal(answer.headers.get('plant-id'), String(id));
      assert.equal(answer.headers.get('plant-revision'), '1');
      assert.equal(answer.headers.get('plant-outcome'), 'created');
    });
  }
});

suite('when several faults apply, the first of them is answered', () => {
  /** Each step mends the fault that was answered before it and leaves all that follow. */
  const steps: [mended: string, mend: RequestParts, error: number][] = [
    [
      'nothing',
      {
        target: '/plant',
        method: 'PUT',
        body: '{'.repeat(BODY_BYTES_MAX + 1),
        headers: { Authorization: null, 'Content-Encoding': 'gzip', 'Content-Type': 'text/plain' },
      },
      40401,
    ],
    ['the path', { target: '/plants' }, 40501],
    ['the method', { method: 'POST' }, 40101],
    ['the missing credential', { headers: { Authorization: `Bearer ${TOKENS.revoked}` } }, 40102],
    ['the credential', { headers: {} }, 41502],
    ['the content coding', { headers: { 'Content-Encoding': null } }, 41501],
    ['the media type', { headers: { 'Content-Type': 'application/json' } }, 41301],
    ['the size', { body: '{"id":1.5,"name":' }, 40001],
    ['the JSON', { body: '{"id":1.5,"name":"Other"}' }, 40002],
    ['the shape', { body: '{"id":1,"name":"Other"}' }, 40003],
  ];

  test('path, method, credential, media type, size, JSON, shape, store', async () => {
    await using strict = await startTestService({ bodyBytesMax: BODY_BYTES_MAX, repeatedIdRule: 'reject' });
    const send = (parts: RequestParts) => ask(parts, strict.address.port, strict.token);
    const store = await openTokenStore(strict.database);
    await store.createToken({
      hash: hashToken(TOKENS.revoked),
      label: 'revoked',
      createdAt: 1,
      expiresAt: null,
    });
    await store.revokeToken('revoked', 2);
    await store.close();
    assertPlantAnswer(await send({ body: '{"id":1,"name":"First"}' }), { name: 'First' });

    let parts: RequestParts = {};
    for (const [mended, { headers, ...mend }, error] of steps) {
      parts = { ...parts, ...mend, headers: { ...parts.headers, ...headers } };
      if (mended === 'the credential') delete parts.headers!.Authorization;
      const answer = await send(parts);
      assert.equal(JSON.parse(answer.body).error, error, `${mended} mended: ${answer.body}`);
      assertErrorAnswer(answer, error);
    }
  });
});

suite('a repeated id', () => {
  test('is unchanged, then revised, as the headers say', async () => {
    const id = ++lastId;
    const outcomes = [];
    for (const content of ['"name":"A"', '"name":"A"', '"name":"A","tag":""', '"name":"A"']) {
      const { status, headers } = await ask({ body: `{"id":${id},${content}}` });
      outcomes.push([status, headers.get('plant-outcome'), headers.get('plant-revision')]);
    }
    assert.deepEqual(outcomes, [
      [200, 'created', '1'],
      [200, 'unchanged', '1'],
      [200, 'revised', '2'],
      [200, 'revised', '3'],
    ]);
  });
});

suite('/openapi.json', () => {
  test('is the description, without a credential', async () => {
    const answer = await ask({ method: 'GET', target: '/openapi.json', ...authorization(null) });
    assert.equal(answer.status, 200);
    assertCommonHeaders(answer);
    assert.equal(answer.body, openApiJson());
  });

  test('HEAD has the headers of GET and no body', async () => {
    const answer = await ask({ method: 'HEAD', target: '/openapi.json' });
    assert.equal(answer.status, 200);
    assertCommonHeaders(answer);
    assert.equal(answer.headers.get('content-length'), String(Buffer.byteLength(openApiJson())));
  });
});

suite('the operations listener', () => {
  const answers: [path: string, status: number, body: object][] = [
    ['/livez', 200, { status: 'live' }],
    ['/readyz', 200, { status: 'ready' }],
  ];
  for (const [path, status, body] of answers) {
    test(`${path} is answered ${status}`, async () => {
      const response = await fetch(service.opsUrl + path);
      assert.equal(response.status, status);
      assert.deepEqual(await response.json(), body);
    });
  }

  test('takes no plants', async () => {
    const answer = await ask({}, service.opsAddress.port);
    assert.equal(answer.status, 404);
  });
});

test('in the end the store holds what was answered 200 and nothing else, and the log no fault', async () => {
  const reader = await openReader(service.database);
  const stored = await Array.fromAsync(
    reader.revisions(),
    ({ plant, revision }) => `${plant.id}:${revision}`,
  );
  await reader.close();
  assert.deepEqual(new Set(stored), kept);
  assert.deepEqual(service.logged, []);
});
