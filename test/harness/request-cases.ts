import { HEADER_MAX_BYTES } from '../../src/core/contract/limits.ts';
import { hashToken, makeToken } from '../../src/core/tokens/token.ts';
import { openCommandStore } from './open-store.ts';
import { chunked, type RequestParts, requestBytes } from './raw-connection.ts';

/** A request with its expected response. */
export interface RequestCase {
  what: string;
  /** @param body the NewPlant to send, unless the case has another body */
  bytes(token: string, body: string): Buffer;
  /** The error number; undefined if the plant is created. */
  error?: number;
  /** Whether the service closes the connection after the response and ignores further requests. */
  closes?: boolean;
  /** Names are in lower case; undefined for a header that must be absent. */
  headers?: Record<string, string | undefined>;
  isHead?: boolean;
}

/** The body limit of the service that receives these requests. */
export const BODY_MAX_BYTES = 1000;
/** Well-formed tokens: {@link makeTokensKnown} stores two, and one is unknown. */
const TOKENS = { expired: makeToken(), revoked: makeToken(), unknown: makeToken() };

export async function makeTokensKnown(database: string): Promise<void> {
  const store = await openCommandStore(database);
  const token = { createdAt: 1, expiresAt: null };
  await store.tokenTable.createToken({
    ...token,
    hash: hashToken(TOKENS.expired),
    label: 'expired',
    expiresAt: 2,
  });
  await store.tokenTable.createToken({ ...token, hash: hashToken(TOKENS.revoked), label: 'revoked' });
  await store.tokenTable.revokeToken('revoked', 2);
  await store.close();
}

function field(name: string): (value: string | string[] | null) => RequestParts {
  return value => ({ headers: { [name]: value } });
}

export const authorization = field('Authorization');
export const contentType = field('Content-Type');

function target(value: string): RequestParts {
  return { target: value };
}

/** A case for each request, named after its differences from a plain one. */
function cases(requests: RequestParts[], expected: Partial<RequestCase>): RequestCase[] {
  return requests.map(parts => ({
    what: JSON.stringify(
      parts.body instanceof Uint8Array ? { hex: Buffer.from(parts.body).toString('hex') } : parts,
    ),
    bytes: (token, body) => requestBytes(token, { body, ...parts }),
    isHead: parts.method === 'HEAD',
    ...expected,
  }));
}

const IN_CHUNKS = { 'Content-Length': null, 'Transfer-Encoding': 'chunked' };
/** The whole body in one chunk, for {@link chunks}. */
const ONE_CHUNK = 'size\r\nBODY\r\n0\r\n\r\n';
const CHALLENGE = 'Bearer realm="plant-store"';
const INVALID_TOKEN = `${CHALLENGE}, error="invalid_token", error_description="the token is unknown, mistyped, expired or revoked; copy it again or ask the operator for a new one"`;
const EXPECTED = { Expect: '100-continue', 'Content-Length': String(BODY_MAX_BYTES) };
const TOO_LONG = '{"id":1,"name":"A"}'.padEnd(BODY_MAX_BYTES + 1);

/** By the rule that rejects them. */
export const REJECTED_REQUESTS: Record<string, RequestCase[]> = {
  'the response to an unknown path is 404': cases(
    [
      ...['/plants/', '/Plants', '//plants', '/plants/1', '/plants;a=b', '/plants%2F'].map(target),
      ...['/../plants', '/plants%zz', '/%ff', '/__proto__', `/${'a'.repeat(8000)}`].map(target),
      ...['http://other.example?/plants', 'http://other.example/Plants', 'ftp://a/plants'].map(target),
      ...['/constructor', '/livez'].map(path => ({ method: 'GET', target: path })),
      { method: 'OPTIONS', target: '*' },
      { target: '/nowhere', headers: { Expect: 'flowers' } },
    ],
    { error: 40401, headers: { allow: undefined, location: undefined } },
  ),

  'the response to a method that the path does not support is 405 with Allow': [
    ...cases(
      [
        ...['GET', 'HEAD', 'PUT', 'OPTIONS', 'TRACE', 'PROPFIND', 'post', 'P!'].map(method => ({ method })),
        ...['/plants?id=1', '/%70lants', 'http://a/plants'].map(path => ({ method: 'PUT', target: path })),
      ],
      { error: 40501, headers: { allow: 'POST' } },
    ),
    ...cases(['/openapi.json', '/docs'].map(target), { error: 40501, headers: { allow: 'GET, HEAD' } }),
    {
      what: 'CONNECT, which opens no tunnel',
      bytes: () => Buffer.from('CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n'),
      error: 40501,
      closes: true,
      headers: { allow: 'POST' },
    },
  ],

  // RFC 6750 section 3.1: no error code where the request lacks any authentication information.
  'the response without a bearer token is 401, and the challenge names no error': cases(
    [
      ...[null, '', 'Bearer', 'Basic YTpi', TOKENS.unknown, 'Bearer a b'].map(authorization),
      ...['Bearer\ta', 'Bearer "a"', [`Bearer ${TOKENS.revoked}`, 'Bearer a']].map(authorization),
      { target: '/plants?access_token=a', ...authorization(null) },
      { headers: { Authorization: null, 'Proxy-Authorization': 'Bearer a' } },
      // After 2,000 headers Node would drop the second one.
      { headers: { a: Array<string>(2500).fill(''), authorization: 'Bearer a' } },
    ],
    { error: 40101, headers: { 'www-authenticate': CHALLENGE } },
  ),

  'the response to an invalid token is 401 with invalid_token': cases(
    [
      ...['abc', `${TOKENS.expired.slice(0, -1)}-`, 'a'.repeat(10_000)],
      ...Object.values(TOKENS),
      `${TOKENS.unknown}=`,
      TOKENS.unknown.replace('plant_', 'PLANT_'),
    ].map(token => authorization(`Bearer ${token}`)),
    { error: 40102, headers: { 'www-authenticate': INVALID_TOKEN } },
  ),

  'the response to a body other than plain application/json in UTF-8 is 415': [
    ...cases(
      [
        ...[null, '', 'text/plain', 'application/jsonx', 'application/plant+json', 'json'],
        ...['application/json; charset=utf-16', 'application/json, text/plain'],
        ['application/json', 'application/json'],
        // A backtracking parser would be slow on this.
        `application/json${' '.repeat(15_000)}x`,
      ].map(contentType),
      { error: 41501 },
    ),
    ...cases(['gzip', 'identity', ''].map(field('Content-Encoding')), { error: 41502 }),
  ],

  'the response to a body over the limit is 413': [
    ...cases([{ body: TOO_LONG }, chunked(TOO_LONG)], { error: 41301 }),
    ...cases(['100000', '9007199254740992'].map(field('Content-Length')), {
      error: 41301,
      closes: true,
      headers: { connection: 'close' },
    }),
  ],

  'the response to a body that is not a NewPlant is 400': [
    ...cases(
      ['', '{"id":1,"name":"A"}{}', '\ufeff{"id":1,"name":"A"}', '['.repeat(BODY_MAX_BYTES)].map(body => ({
        body,
      })),
      { error: 40001 },
    ),
    ...cases([{ body: '', headers: { 'Content-Length': null } }], { error: 40001 }),
    ...cases(
      ['[]', '{}', '{"id":1,"id":1,"name":"A"}', '{"id":1,"name":"A","tag":null}'].map(body => ({ body })),
      { error: 40002 },
    ),
  ],

  // RFC 9110 section 10.1.1: a final response may replace the 100.
  'the service does not wait for a body with Expect if it rejects the headers': [
    [40101, { Authorization: null }] as const,
    [40102, { Authorization: 'Bearer a' }] as const,
    [41501, { 'Content-Type': 'text/plain' }] as const,
    [41301, { 'Content-Length': '1001' }] as const,
    [40000, { Host: 'a b' }] as const,
  ].flatMap(([error, headers]) =>
    cases([{ headers: { ...EXPECTED, ...headers }, body: '' }], {
      error,
      closes: true,
      headers: { connection: 'close' },
    }),
  ),

  'the response to headers over 16 KiB is 431': cases(
    [
      { headers: { 'X-Padding': 'a'.repeat(HEADER_MAX_BYTES) } },
      // The parser counts the name and the value of each line.
      { headers: { a: Array<string>(HEADER_MAX_BYTES / 8).fill('12345678') } },
      target(`/plants?${'a'.repeat(HEADER_MAX_BYTES)}`),
      authorization(`Bearer ${'a'.repeat(HEADER_MAX_BYTES)}`),
    ],
    { error: 43101, closes: true },
  ),

  'the response to a fragment in the target, or to other than one valid Host, is 400 (RFC 9112 section 3.2)':
    cases(
      [
        ...['/plants#part', '/plants?a=b#part'].map(target),
        ...['a b', 'user@a', 'http://a', 'a/b', 'a:b', '[::1', null].map(field('Host')),
        ...['a', 'b'].map(second => field('Host')(['a', second])),
      ],
      { error: 40000, closes: true },
    ),
};

/** Accepted requests, which differ from a plain request only in form. */
export const ACCEPTED_REQUESTS: RequestCase[] = [
  ...cases(
    [
      ...['/plants?a=b', '/plants?', '/%70lants', '/plants?%zz', 'http://other.example/plants'].map(target),
      target('HTTPS://other.example:8443/plants?a=b'),
      ...['APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json;charset="UTF-8"'].map(
        contentType,
      ),
      contentType('application/json; profile=a'),
      { headers: { Accept: 'text/html', Cookie: 'a=b', Origin: 'https://plants.example' } },
      { headers: { Expect: 'flowers' } },
      { headers: { 'X-Note': 'probe RTSP/1.0' } },
      ...['', '127.0.0.1:8080', '[::1]:8080', 'a_b'].map(field('Host')),
      // A request to upgrade is processed as HTTP/1.1.
      ...['h2c', 'websocket'].map(upgrade => ({
        headers: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: upgrade, 'HTTP2-Settings': 'AAEA' },
      })),
    ],
    {},
  ),
  ...['bearer ', 'Bearer  '].map(scheme => ({
    what: `the scheme ${JSON.stringify(scheme)}`,
    bytes: (token: string, body: string) => requestBytes(token, { body, ...authorization(scheme + token) }),
  })),
  ...cases(
    [
      { headers: { Connection: 'close' } },
      { version: '1.0', headers: { Host: null } },
      { version: '1.0', headers: { Connection: 'close', Expect: '100-continue' } },
    ],
    { closes: true },
  ),
  {
    what: 'as many bytes in chunks as the limit allows',
    bytes: (token, body) => requestBytes(token, chunked(body.padEnd(BODY_MAX_BYTES))),
  },
  {
    what: 'a byte in each chunk',
    bytes: (token, body) =>
      requestBytes(token, {
        headers: IN_CHUNKS,
        body: `${Array.from(body, byte => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`,
      }),
  },
  ...['Chunked', '  chunked '].map(coding => chunks(ONE_CHUNK, { 'Transfer-Encoding': coding })),
  ...[
    '000SIZE\r\nBODY\r\n000\r\n\r\n',
    'size;a=b;c="d;e"\r\nBODY\r\n0;f\r\n\r\n',
    'size\r\nBODY\r\n0\r\nHost: b\r\nAuthorization: Bearer a\r\n\r\n',
  ].map(wire => chunks(wire)),
  {
    what: 'as many bytes as the limit allows',
    bytes: (token, body) => requestBytes(token, { body: body.padEnd(BODY_MAX_BYTES) }),
  },
];

/**
 * A request with a Transfer-Encoding.
 *
 * @param wire the body as sent; BODY is replaced by the NewPlant, and `size` by its length in
 *   hexadecimal (SIZE: in capitals)
 */
function chunks(wire: string, headers: RequestParts['headers'] = {}, version = '1.1'): RequestCase {
  return {
    what: JSON.stringify({ wire, ...headers, version }),
    bytes(token, body) {
      const size = body.length.toString(16);
      const text = wire.replace('SIZE', size.toUpperCase()).replace('size', size).replace('BODY', body);
      return requestBytes(token, { version, headers: { ...IN_CHUNKS, ...headers }, body: text });
    },
  };
}

function changed(from: string, to: string): RequestCase {
  return {
    what: `${JSON.stringify(to)} instead of ${JSON.stringify(from)}`,
    bytes: (token, body) => Buffer.from(requestBytes(token, { body }).toString().replaceAll(from, to)),
  };
}

/** Not valid by RFC 9112, although a lenient parser may accept it. */
const MALFORMED: RequestCase[] = [
  // Used for request smuggling (section 11.2).
  ...cases(
    [['19', '5'], ['19', '19'], '19, 5', '-1', '+19', '', '18446744073709551617'].map(
      field('Content-Length'),
    ),
    {},
  ),
  ...[
    ...['flowers', '', 'chunked, gzip', ['chunked', 'chunked'], 'xchunked', '\r\n chunked'],
    ...['gzip, chunked', 'identity, chunked', 'chunked,', 'chunked;a=b'],
  ].map(coding => chunks(ONE_CHUNK, { 'Transfer-Encoding': coding })),
  chunks(ONE_CHUNK, { 'Content-Length': '19' }),
  // HTTP/1.0 has no Transfer-Encoding.
  chunks(ONE_CHUNK, { Connection: 'keep-alive' }, '1.0'),
  ...['0xsize', '-size', 'size ', 'size;a=\rb', '', '10000000000000001', '3'].map(size =>
    chunks(ONE_CHUNK.replace('size', size)),
  ),
  ...[
    'size\r\nBODY0\r\n\r\n',
    'size\r\nBODY\n0\r\n\r\n',
    'size\nBODY\r\n0\r\n\r\n',
    'size\r\nBODY\r\n0\r\nA: b\n\r\n',
  ].map(wire => chunks(wire)),
  ...[
    ['Bearer ', 'Bearer\r\n '],
    ['Content-Length:', 'Content-Length :'],
    ['Content-Length', 'Content\0Length'],
    ['plants.example', 'plants\0example'],
    ['example\r\n', 'example\n'],
    ['\r\n', '\n'],
    ['\r\nHost', '\r\n Host'],
    ['\r\nHost:', '\r\nflowers\r\nHost:'],
    ['/plants ', '/plants a '],
    ...['', ' HTTP/1.10', ' HTTP/0.9', ' HTTP/2.0', ' ICY/1.1', ' RTSP/1.0', '  HTTP/1.1'].map(version => [
      ' HTTP/1.1',
      version,
    ]),
    ['POST ', 'POST  '],
  ].map(([from, to]) => changed(from!, to!)),
  { what: 'the preface of HTTP/2', bytes: () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n') },
  { what: 'the hello of TLS', bytes: () => Buffer.from('160301020001000001fc0303', 'hex') },
  { what: 'junk', bytes: () => Buffer.from('junk\r\n\r\n') },
];

/** Not HTTP/1.1: the error follows the earlier responses, and later requests are ignored. */
export const NOT_HTTP: RequestCase[] = [
  ...MALFORMED.map(each => ({ ...each, error: 40000, closes: true })),
  ...[
    `size;a=${'b'.repeat(20_000)}\r\nBODY\r\n0\r\n\r\n`,
    `size\r\nBODY\r\n0\r\nA: ${'b'.repeat(20_000)}\r\n\r\n`,
  ].map(wire => ({ ...chunks(wire), error: 43101, closes: true })),
];
