import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { RawConnection, type RequestParts, requestBytes } from './harness/raw-connection.ts';
import { until } from './harness/until.ts';
import { NOT_HTTP } from './malformed-requests.ts';
import { BODY_BYTES_MAX, REFUSED_REQUESTS } from './refused-requests.ts';
import { type RunningService, startTestService } from './running-service.ts';
import { isLeftToNode } from './server-side.ts';

const BODY = '{"id":1,"name":"A"}';
/** What a page of another origin sends; nothing of an answer may be for it unless that was asked for. */
const ORIGIN = { Origin: 'https://pages.example' };
const GET = { method: 'GET', body: '', headers: { 'Content-Length': null } };
const LEAVES_TO_NODE = requestBytes('', { ...GET, target: '/nowhere' });

/** Requests, well-formed and not, by what each is. */
const REQUESTS: [what: string, bytes: (token: string) => Uint8Array][] = [
  ['a plant', token => requestBytes(token, { body: BODY })],
  ['a plant from a page', token => requestBytes(token, { body: BODY, headers: ORIGIN })],
  ['the page', token => requestBytes(token, { ...GET, target: '/docs' })],
  ['the description', token => requestBytes(token, { ...GET, target: '/openapi.json' })],
  [
    'HEAD of the description',
    token => requestBytes(token, { ...GET, method: 'HEAD', target: '/openapi.json' }),
  ],
  ['a preflight', token => requestBytes(token, preflight())],
  ['OPTIONS of everything', token => requestBytes(token, { ...preflight(), target: '*' })],
  ['no Host', token => requestBytes(token, { headers: { Host: null } })],
  ['an unknown expectation', token => requestBytes(token, { headers: { Expect: 'flowers' } })],
  ['headers over 16 KiB', token => requestBytes(token, { headers: { 'X-Padding': 'a'.repeat(17_000) } })],
  ...['/livez', '/readyz', '/metrics', '/%zz'].map(
    target => [`GET ${target}`, (token: string) => requestBytes(token, { ...GET, target })] as const,
  ),
  ...Object.values(REFUSED_REQUESTS)
    .flat()
    .map(({ what, parts }) => [what, (token: string) => requestBytes(token, parts)] as const),
  ...NOT_HTTP.map(({ what, bytes }) => [what, (token: string) => bytes(token, BODY)] as const),
] as [string, (token: string) => Uint8Array][];

function preflight(): RequestParts {
  const asks = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization' };
  return { method: 'OPTIONS', body: '', headers: { Authorization: null, ...ORIGIN, ...asks } };
}

let service: RunningService;
before(async () => {
  service = await startTestService({ bodyBytesMax: BODY_BYTES_MAX });
});
after(() => service[Symbol.asyncDispose]());

/** The header fields of every final answer to what is sent, names in lower case. */
async function fieldsOfAnswers(port: number, bytes: Uint8Array, throughNode: boolean): Promise<string[][]> {
  using connection = await RawConnection.open(port);
  if (throughNode) {
    connection.write(LEAVES_TO_NODE);
    assert.equal((await connection.answer()).status, 404);
    assert.ok(isLeftToNode(connection));
  }
  connection.write(bytes);
  await until('an answer comes', () => connection.unread.includes('\r\n\r\n'));
  connection.finish();
  await connection.ended;
  const heads = connection.unread.matchAll(/^HTTP\/1\.1 [2-5][0-9]{2} [^\r]*\r\n(.*?)\r\n\r\n/gms);
  return Array.from(heads, ([, fields]) => fields!.toLowerCase().split('\r\n'));
}

function assertHardened(fields: string[], what: string): void {
  for (const field of ['x-content-type-options: nosniff', 'cache-control: no-store'])
    assert.ok(fields.includes(field), `${what}: ${field} is not among ${fields}`);
  const telling = /^(?:server|x-powered-by|via|vary|access-control-[a-z-]+):/;
  assert.deepEqual(
    fields.filter(field => telling.test(field)),
    [],
    what,
  );
}

const LISTENERS: [what: string, port: () => number, throughNode: boolean][] = [
  ['the listener for plants', () => service.address.port, false],
  ['the listener for plants, through Node’s HTTP server', () => service.address.port, true],
  ['the operations listener', () => service.opsAddress.port, false],
];
for (const [listener, port, throughNode] of LISTENERS) {
  test(`every answer of ${listener} is nosniff and no-store, names no software and allows no other origin`, async () => {
    // Side by side, since what follows a refusal is read for two seconds before the connection is closed.
    const answered = REQUESTS.map(async ([what, bytes]) => {
      const answers = await fieldsOfAnswers(port(), bytes(service.token), throughNode);
      assert.ok(answers.length > 0, what);
      for (const fields of answers) assertHardened(fields, what);
    });
    await Promise.all(answered);
  });
}
