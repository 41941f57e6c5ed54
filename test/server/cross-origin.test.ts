import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as raw from '../harness/raw-connection.ts';
import { authorization } from '../harness/request-cases.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';

const PAGE = 'https://pages.example';
const OTHER_PAGE = 'http://localhost:5173';
const STRANGER = 'https://strangers.example';
const TRACING = 'authorization,content-type,traceparent,baggage,sentry-trace,x-request-id';
const EXPOSED =
  'Plant-Id, Plant-Revision, Plant-Outcome, Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, Link';

function ask({ address, token }: RunningService, parts: raw.RequestParts): Promise<raw.RawResponse> {
  return raw.ask(address.port, token, parts);
}

/** What a browser sends before a page may POST with a token. */
function preflight(origin: string, more: raw.RequestParts['headers'] = {}): raw.RequestParts {
  const headers = {
    Authorization: null,
    'Content-Type': null,
    'Content-Length': null,
    Origin: origin,
    'Access-Control-Request-Method': 'POST',
    'Access-Control-Request-Headers': TRACING,
    ...more,
  };
  return { method: 'OPTIONS', body: '', headers };
}

/** The header fields of a response that are for browsers. */
function browserFields({ headers }: raw.RawResponse): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => /^(?:access-control-|vary)/.test(name)));
}

function readableFor(origin: string): Record<string, string> {
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED,
    ...(origin !== '*' && { vary: 'Origin' }),
  };
}

function allowedFor(origin: string): Record<string, string> {
  return {
    ...readableFor(origin),
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': TRACING,
    'access-control-max-age': '7200',
  };
}

test('with --cors-origin *, a page of any origin may send plants', async () => {
  await using service = await startTestService({ corsOrigins: '*' });
  assert.deepEqual(browserFields(await ask(service, preflight(PAGE))), allowedFor('*'));
  for (const invalid of [null, 'a b', 'a,,b', 'a\xe9']) {
    const { headers } = await ask(service, preflight(PAGE, { 'Access-Control-Request-Headers': invalid }));
    const fields = 'authorization, content-type, if-plant-revision';
    assert.equal(headers.get('access-control-allow-headers'), fields);
  }
  const response = await ask(service, { headers: { Origin: PAGE } });
  assert.deepEqual([response.status, browserFields(response)], [200, readableFor('*')]);
});

test('with --cors-origin, pages of the list may send plants and read every response, and no others', async () => {
  await using service = await startTestService({ corsOrigins: [PAGE, OTHER_PAGE] });
  for (const origin of [PAGE, OTHER_PAGE]) {
    const response = await ask(service, preflight(origin));
    assert.deepEqual([response.status, browserFields(response)], [204, allowedFor(origin)]);
    assert.equal(response.headers.get('content-length'), undefined, 'RFC 9110 section 8.6');
  }
  const requests: [status: number, parts: raw.RequestParts][] = [
    [200, {}],
    [400, raw.chunked('no JSON')],
    [401, authorization(null)],
    [404, { target: '/nowhere' }],
    [404, { ...preflight(PAGE), target: '/nowhere' }],
    [405, { ...preflight(PAGE), target: '/openapi.json' }],
  ];
  for (const [status, parts] of requests) {
    const response = await ask(service, { ...parts, headers: { ...parts.headers, Origin: PAGE } });
    assert.equal(response.status, status, response.body);
    assert.deepEqual(browserFields(response), readableFor(PAGE), response.body);
  }
  // Without an origin or a requested method, it is no preflight.
  for (const missing of ['Origin', 'Access-Control-Request-Method']) {
    const { status, headers } = await ask(service, preflight(PAGE, { [missing]: null }));
    assert.deepEqual([status, headers.get('allow')], [405, 'POST']);
  }

  for (const origin of [STRANGER, 'null', '*', 'http://pages.example', `${PAGE}.strangers.example`]) {
    const preflightResponse = await ask(service, preflight(origin));
    assert.equal(preflightResponse.status, 405, origin);
    assert.deepEqual(browserFields(preflightResponse), { vary: 'Origin' }, origin);
    const response = await ask(service, { headers: { Origin: origin } });
    assert.equal(response.status, 200, 'the credential decides, not the origin');
    assert.deepEqual(browserFields(response), { vary: 'Origin' }, origin);
  }
  const twice = await ask(service, { headers: { Origin: [PAGE, STRANGER] } });
  assert.deepEqual(browserFields(twice), { vary: 'Origin' });

  // Other clients see no difference.
  using connection = await raw.RawConnection.open(service.address.port);
  connection.write(raw.requestBytes(service.token));
  assert.deepEqual(browserFields(await connection.response()), {});
});
