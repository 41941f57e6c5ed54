import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import * as raw from '../harness/raw-connection.ts';
import { authorization } from '../harness/request-cases.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { isLeftToNode } from '../harness/server-side.ts';

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

suite('with --cors-origin', () => {
  for (const corsOrigins of [[PAGE, OTHER_PAGE], '*'] as const) {
    const shown = (origin: string): string => (corsOrigins === '*' ? '*' : origin);

    test(`${corsOrigins}: a page may send plants and read every response, and other clients see no difference`, async () => {
      await using service = await startTestService({ corsOrigins });
      for (const origin of [PAGE, OTHER_PAGE]) {
        const response = await ask(service, preflight(origin));
        assert.equal(response.status, 204);
        assert.deepEqual(browserFields(response), {
          ...readableFor(shown(origin)),
          'access-control-allow-methods': 'POST',
          'access-control-allow-headers': TRACING,
          'access-control-max-age': '7200',
        });
        assert.equal(response.headers.get('content-length'), undefined, 'RFC 9110 section 8.6');
      }
      for (const invalid of [null, 'a b', 'a,,b', 'a\xe9'])
        assert.equal(
          (await ask(service, preflight(PAGE, { 'Access-Control-Request-Headers': invalid }))).headers.get(
            'access-control-allow-headers',
          ),
          'authorization, content-type',
        );
      for (const [target, status] of [
        ['/openapi.json', 405],
        ['/nowhere', 404],
      ] as const)
        assert.equal((await ask(service, { ...preflight(PAGE), target })).status, status);

      const requests: [status: number, parts: raw.RequestParts][] = [
        [200, {}],
        [400, { body: 'no JSON', headers: { 'Transfer-Encoding': 'chunked', 'Content-Length': null } }],
        [401, authorization(null)],
        [404, { target: '/nowhere' }],
      ];
      for (const [status, parts] of requests) {
        const response = await ask(service, { ...parts, headers: { ...parts.headers, Origin: PAGE } });
        assert.equal(response.status, status, response.body);
        assert.deepEqual(browserFields(response), readableFor(shown(PAGE)), response.body);
      }

      using connection = await raw.RawConnection.open(service.address.port);
      connection.write(raw.requestBytes(service.token));
      const response = await connection.response();
      assert.equal(response.status, 200);
      assert.deepEqual(browserFields(response), {});
      assert.ok(!isLeftToNode(connection));
      // Without an origin or a requested method, it is no preflight.
      for (const missing of ['Origin', 'Access-Control-Request-Method']) {
        const { status, headers } = await ask(service, preflight(PAGE, { [missing]: null }));
        assert.deepEqual([status, headers.get('allow')], [405, 'POST']);
      }
    });
  }

  test('an origin that is not in the list is rejected, however similar it is', async () => {
    await using service = await startTestService({ corsOrigins: [PAGE] });
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
  });
});
