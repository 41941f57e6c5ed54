import { hashToken, makeToken } from '../src/auth/token.ts';
import { HEADER_BYTES_MAX } from '../src/contract/limits.ts';
import { openTokenStore } from '../src/store/open-store.ts';
import { chunked, type RequestParts, requestBytes } from './harness/raw-connection.ts';

/** One request, and what becomes of it on the fast path as by Node's HTTP server. */
export interface RequestCase {
  what: string;
  /** @param body the NewPlant that is sent, where the case does not say another body */
  bytes(token: string, body: string): Buffer;
  /** The number of the error; undefined where the plant is created. */
  error?: number;
  /** Whether the connection is closed behind the answer, so that what follows is not taken. */
  closes?: boolean;
  /** Names in lower case; undefined where there must be no such field. */
  headers?: Record<string, string | undefined>;
  isHead?: boolean;
}

/** The limit of the service that these requests go to. */
export const BODY_BYTES_MAX = 1000;
/** Well-formed tokens: two that {@link makeTokensKnown} makes, and one that nobody made. */
const TOKENS = { expired: makeToken(), revoked: makeToken(), unknown: makeToken() };

/** Has a store know the tokens of these requests as what they are. */
export async function makeTokensKnown(database: string): Promise<void> {
  const store = await openTokenStore(database);
  const token = { createdAt: 1, expiresAt: null };
  await store.createToken({ ...token, hash: hashToken(TOKENS.expired), label: 'expired', expiresAt: 2 });
  await store.createToken({ ...token, hash: hashToken(TOKENS.revoked), label: 'revoked' });
  await store.revokeToken('revoked', 2);
  await store.close();
}

export function authorization(value: string | string[] | null): RequestParts {
  return { headers: { Authorization: value } };
}

export function contentType(value: string | string[] | null): RequestParts {
  return { headers: { 'Content-Type': value } };
}

function target(value: string, parts: RequestParts = {}): RequestParts {
  return { target: value, ...parts };
}

function method(value: string, target = '/plants'): RequestParts {
  return { method: value, target };
}

/** A case for each request, named by what is different in it from a plain one. */
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

const CHALLENGE = 'Bearer realm="plant-store"';
const INVALID_TOKEN = `${CHALLENGE}, error="invalid_token", error_description="the token is unknown, mistyped, expired or revoked"`;
const EXPECTED = { Expect: '100-continue', 'Content-Length': String(BODY_BYTES_MAX) };
const TOO_LONG = plantOfBytes(BODY_BYTES_MAX + 1);

/** By the rule that refuses them. */
export const REFUSED_REQUESTS: Record<string, RequestCase[]> = {
  'a path that is not there is answered 404': [
    ...cases([target('/plants/')], { error: 40401, headers: { allow: undefined, location: undefined } }),
    ...cases(
      [
        ...['/Plants', '//plants', '/plants/1', '/plants;a=b', '/plants%2F', '/%2Fplants', '/../plants'],
        ...['/plants%zz', '/%', '/%ff', '/__proto__', `/${'a'.repeat(8000)}`],
        ...['http://other.example', 'http://other.example?/plants', 'http://other.example/Plants'],
        'ftp://other.example/plants',
      ].map(value => target(value)),
      { error: 40401 },
    ),
    ...cases(
      ['/', '/constructor', '/livez', '/docs/', '/openapi.json/'].map(value => method('GET', value)),
      { error: 40401 },
    ),
    ...cases([method('OPTIONS', '*'), target('/nowhere', { headers: { Expect: 'flowers' } })], {
      error: 40401,
    }),
  ],

  'a method that the path does not take is answered 405 with Allow': [
    ...cases(
      [
        ...['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'].map(each =>
          method(each),
        ),
        ...['/plants?id=1', '/%70lants', 'http://other.example/plants'].map(each => method('PUT', each)),
      ],
      { error: 40501, headers: { allow: 'POST' } },
    ),
    ...cases(
      ['POST', 'PUT', 'DELETE', 'OPTIONS'].flatMap(each =>
        ['/openapi.json', '/docs'].map(path => method(each, path)),
      ),
      { error: 40501, headers: { allow: 'GET, HEAD' } },
    ),
    {
      what: 'CONNECT, which opens no tunnel',
      bytes: () => Buffer.from('CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n'),
      ...{ error: 40501, closes: true, headers: { allow: 'POST' } },
    },
  ],

  // RFC 6750 section 3.1: no error code where the request lacks any authentication information.
  'a request without a bearer token is answered 401, and the challenge names no error': cases(
    [
      ...[null, '', 'Bearer', 'Basic YTpi', TOKENS.unknown, 'Bearer a b', 'Bearer a, Bearer b'].map(
        authorization,
      ),
      ...['Bearer\ta', 'Bearer "a"', [`Bearer ${TOKENS.revoked}`, 'Bearer a']].map(authorization),
      target('/plants?access_token=a', authorization(null)),
      { headers: { Authorization: null, 'Proxy-Authorization': 'Bearer a' } },
      // Behind so many fields Node would drop the second one unseen.
      { headers: { a: Array<string>(2500).fill(''), authorization: 'Bearer a' } },
    ],
    { error: 40101, headers: { 'www-authenticate': CHALLENGE } },
  ),

  'a token that is not in force is answered 401 with invalid_token': cases(
    [
      ...['abc', `${TOKENS.expired.slice(0, -1)}-`, 'a'.repeat(10_000)],
      ...Object.values(TOKENS),
      `${TOKENS.unknown}=`,
      TOKENS.unknown.replace('plant_', 'PLANT_'),
    ].map(token => authorization(`Bearer ${token}`)),
    { error: 40102, headers: { 'www-authenticate': INVALID_TOKEN } },
  ),

  'a body that is not application/json in UTF-8 as it stands is answered 415': [
    ...cases(
      [
        ...[null, '', 'text/plain', 'application/jsonx', 'application/plant+json', 'json'],
        ...['application/x-www-form-urlencoded', 'application/json; charset=utf-16'],
        ...['application/json;charset="iso-8859-1"', 'application/json, text/plain'],
        ['application/json', 'application/json'],
        // Parsed, it would take a while.
        `application/json${' '.repeat(15_000)}x`,
      ].map(contentType),
      { error: 41501 },
    ),
    ...cases(
      ['gzip', 'identity', ''].map(coding => ({ headers: { 'Content-Encoding': coding } })),
      { error: 41502 },
    ),
  ],

  'a body over the limit is answered 413': [
    ...cases([{ body: TOO_LONG }, target('/plants?', { body: TOO_LONG }), chunked(TOO_LONG)], {
      error: 41301,
    }),
    ...cases(
      ['100000', '9007199254740992'].map(length => ({ headers: { 'Content-Length': length }, body: '' })),
      { error: 41301, closes: true, headers: { connection: 'close' } },
    ),
  ],

  'a body that is no NewPlant is answered 400': [
    ...cases(
      [
        ...['', '{"id":1,"name":"secret', '{"id":1,"name":"A"}{}', '\ufeff{"id":1,"name":"A"}'],
        ...[Buffer.from('{"id":1,"name":"A"}', 'utf16le'), Buffer.from('{"id":1,"name":"\xff"}', 'latin1')],
        '['.repeat(BODY_BYTES_MAX),
      ].map(body => ({ body })),
      { error: 40001 },
    ),
    ...cases([{ body: '', headers: { 'Content-Length': null } }], { error: 40001 }),
    ...cases(
      [
        ...['[]', '{}', '{"id":1,"id":1,"name":"A"}', '{"id":1,"name":"A","tag":null}'],
        ...[String.raw`{"id":1,"name":"\u0000"}`, String.raw`{"id":1,"name":"\ud800"}`],
        '{"id":9223372036854775808,"name":"A"}',
      ].map(body => ({ body })),
      { error: 40002 },
    ),
  ],

  // RFC 9110 section 10.1.1: a final answer may come in place of the 100.
  'a body that is announced with Expect is not waited for where its headers are refused': [
    [40101, { Authorization: null }] as const,
    [40102, { Authorization: 'Bearer a' }] as const,
    [41501, { 'Content-Type': 'text/plain' }] as const,
    [41301, { 'Content-Length': '1001' }] as const,
    [40000, { Host: 'a b' }] as const,
  ].flatMap(([error, headers]) =>
    cases([{ headers: { ...EXPECTED, ...headers }, body: '' }], {
      ...{ error, closes: true, headers: { connection: 'close' } },
    }),
  ),

  'headers over 16 KiB are answered 431': cases(
    [
      { headers: { 'X-Padding': 'a'.repeat(HEADER_BYTES_MAX) } },
      // Of each line the parser counts the name and the value.
      { headers: { a: Array<string>(HEADER_BYTES_MAX / 8).fill('12345678') } },
      target(`/plants?${'a'.repeat(HEADER_BYTES_MAX)}`),
      authorization(`Bearer ${'a'.repeat(HEADER_BYTES_MAX)}`),
    ],
    { error: 43101, closes: true },
  ),

  'a target with a fragment, or not one valid Host, is answered 400 (RFC 9112 sections 3.2, 3.2.1)': cases(
    [
      ...['/plants#part', '/plants?a=b#part'].map(value => target(value)),
      ...[
        ['a', 'b'],
        ['a', 'a'],
        null,
        'a b',
        'user@a',
        'http://a',
        'a/b',
        'a:b',
        '[::1',
        'a,b c',
        'a?b',
      ].map(host => ({ headers: { Host: host } })),
    ],
    { error: 40000, closes: true },
  ),
};

/** By what differs in form only from a plain request. */
export const TAKEN_REQUESTS: RequestCase[] = [
  ...cases(
    [
      ...['/plants?a=b', '/plants?', '/%70lants', '/plants?%zz', 'http://other.example/plants'].map(value =>
        target(value),
      ),
      target('HTTPS://other.example:8443/plants?a=b'),
      ...['APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json;charset="UTF-8"'].map(
        contentType,
      ),
      contentType('application/json; profile=a'),
      { headers: { Accept: 'text/html', Cookie: 'a=b', Origin: 'https://plants.example' } },
      { headers: { Expect: 'flowers' } },
      ...['', 'localhost', '127.0.0.1:8080', '[::1]:8080', 'xn--q9jyb4c.example', 'a_b'].map(host => ({
        headers: { Host: host },
      })),
      // What asks for another protocol is processed as HTTP/1.1.
      ...['h2c', 'websocket'].map(upgrade => ({
        headers: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: upgrade, 'HTTP2-Settings': 'AAEA' },
      })),
    ],
    {},
  ),
  ...['bearer ', 'Bearer  ', 'BEARER '].map(scheme => ({
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
  chunks('a body in chunks', body => String(chunked(body).body)),
  chunks('as many bytes in chunks as the limit allows', body =>
    String(chunked(body.padEnd(BODY_BYTES_MAX)).body),
  ),
  chunks('a byte in each chunk', body => `${Array.from(body, byte => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`),
  chunks('Chunked in another case', body => oneChunk(body), { 'Transfer-Encoding': 'Chunked' }),
  chunks('spaces around chunked', body => oneChunk(body), { 'Transfer-Encoding': '  chunked ' }),
  chunks(
    'a size in capitals with zeros before it',
    body => `000${sizeOf(body).toUpperCase()}\r\n${body}\r\n000\r\n\r\n`,
  ),
  chunks('a chunk extension', body => `${sizeOf(body)};a=b;c="d;e"\r\n${body}\r\n0;f\r\n\r\n`),
  chunks(
    'a trailer, which says nothing',
    body => `${sizeOf(body)}\r\n${body}\r\n0\r\nHost: b\r\nAuthorization: Bearer a\r\n\r\n`,
  ),
  ...['/plants', '/plants?'].map(path => ({
    what: `as many bytes as the limit allows, ${path}`,
    bytes: (token: string, body: string) =>
      requestBytes(token, { target: path, body: body.padEnd(BODY_BYTES_MAX) }),
  })),
];

/** A request with a Transfer-Encoding, its body as it goes over the wire. */
function chunks(
  what: string,
  wire: (body: string) => string,
  headers: RequestParts['headers'] = {},
): RequestCase {
  return {
    what,
    bytes: (token, body) =>
      requestBytes(token, {
        headers: { 'Content-Length': null, 'Transfer-Encoding': 'chunked', ...headers },
        body: wire(body),
      }),
  };
}

function sizeOf(body: string): string {
  return body.length.toString(16);
}

/** One chunk with the whole body, and the last chunk. */
function oneChunk(body: string, size = sizeOf(body), end = '\r\n'): string {
  return `${size}\r\n${body}${end}0\r\n\r\n`;
}

function changed(what: string, change: (text: string) => string): RequestCase {
  return { what, bytes: (token, body) => Buffer.from(change(requestBytes(token, { body }).toString())) };
}

/** Each is wrong by RFC 9112, though a lenient parser may find a request in it. */
const MALFORMED: RequestCase[] = [
  // How requests are smuggled past a proxy (section 11.2).
  ...[
    ...[['19', '5'], ['19', '19'], '19, 5', '1 9', '-1', '+19', '0x13', '', '18446744073709551617'].map(
      length => ({ headers: { 'Content-Length': length } }),
    ),
    ...['flowers', 'identity', ''].map(coding => ({
      headers: { 'Content-Length': null, 'Transfer-Encoding': coding },
    })),
  ].flatMap(parts => cases([parts], {})),
  ...['chunked, gzip', ['chunked', 'chunked'], 'chunked, identity', 'xchunked', '"chunked"', '\vchunked'].map(
    coding =>
      chunks(`Transfer-Encoding: ${JSON.stringify(coding)}`, oneChunk, { 'Transfer-Encoding': coding }),
  ),
  chunks('chunked on the next line', oneChunk, { 'Transfer-Encoding': '\r\n chunked' }),
  ...['chunked', 'identity, chunked'].map(coding =>
    chunks(`Content-Length with Transfer-Encoding: ${coding}`, oneChunk, {
      ...{ 'Content-Length': '19', 'Transfer-Encoding': coding },
    }),
  ),
  {
    what: 'a Transfer-Encoding in HTTP/1.0, which has none',
    bytes: (token, body) =>
      requestBytes(token, {
        ...{ version: '1.0', body: oneChunk(body) },
        headers: { 'Content-Length': null, 'Transfer-Encoding': 'chunked', Connection: 'keep-alive' },
      }),
  },
  ...[
    ...[(size: string) => `0x${size}`, (size: string) => `+${size}`, (size: string) => `-${size}`],
    ...[(size: string) => ` ${size}`, (size: string) => `${size} `, (size: string) => `${size};a=\rb`],
    ...[() => '', () => 'size', () => '10000000000000001', () => '3'],
  ].map(size =>
    chunks(`the chunk size ${JSON.stringify(size('13'))}`, body => oneChunk(body, size(sizeOf(body)))),
  ),
  chunks('a chunk without its line end', body => oneChunk(body, undefined, '')),
  chunks('a chunk that ends with a line feed alone', body => oneChunk(body, undefined, '\n')),
  chunks('a size that ends with a line feed alone', body => `${sizeOf(body)}\n${body}\r\n0\r\n\r\n`),
  chunks('an extension that ends with a line feed alone', body => `${sizeOf(body)};a\n${body}\r\n0\r\n\r\n`),
  chunks(
    'a trailer that ends with a line feed alone',
    body => `${sizeOf(body)}\r\n${body}\r\n0\r\nA: b\n\r\n`,
  ),
  changed('a field on two lines', text => text.replace('Bearer ', 'Bearer\r\n ')),
  changed('a space before the colon', text => text.replace('Content-Length:', 'Content-Length :')),
  changed('a tab before the colon', text => text.replace('Content-Length:', 'Content-Length\t:')),
  changed('lines that end with a carriage return alone', text => text.replaceAll('\r\n', '\r')),
  changed('lines that end with a line feed alone', text => text.replaceAll('\r\n', '\n')),
  changed('one line that ends with a line feed alone', text => text.replace('example\r\n', 'example\n')),
  changed('U+0000 in the name of a field', text => text.replace('Content-Length', 'Content\0Length')),
  changed('U+0000 in a field', text => text.replace('plants.example', 'plants\0example')),
  changed('a carriage return in a field', text => text.replace('plants.example', 'plants\rexample')),
  changed('a tab between method and target', text => text.replace('POST ', 'POST\t')),
  changed('a carriage return before the version', text => text.replace(' HTTP', '\r HTTP')),
  changed('a space before the first field', text => text.replace('\r\nHost', '\r\n Host')),
  changed('a field without a colon', text => text.replace('\r\nHost:', '\r\nflowers\r\nHost:')),
  changed('a field without a name', text => text.replace('\r\nHost:', '\r\n: flowers\r\nHost:')),
  changed('a method in small letters', text => text.replace('POST', 'post')),
  changed('a method that nobody knows', text => text.replace('POST', 'PLANT')),
  changed('a space in the request target', text => text.replace('/plants ', '/plants a ')),
  ...['', ' HTTP/1.10', ' HTTP/0.9', ' HTTP/2.0', ' HTTP/3.0', ' ICY/1.1'].map(version =>
    changed(`the version ${JSON.stringify(version)}`, text => text.replace(' HTTP/1.1', version)),
  ),
  { what: 'the preface of HTTP/2', bytes: () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n') },
  { what: 'the hello of TLS', bytes: () => Buffer.from('160301020001000001fc0303', 'hex') },
  { what: 'junk', bytes: () => Buffer.from('junk\r\n\r\n') },
];

/** What is not HTTP/1.1: it is answered behind the requests before it, and nothing that follows is taken. */
export const NOT_HTTP: RequestCase[] = [
  ...MALFORMED.map(each => ({ ...each, error: 40000, closes: true })),
  ...[
    chunks('chunk extensions over 16 KiB', body => oneChunk(body, `${sizeOf(body)};a=${'b'.repeat(20_000)}`)),
    chunks('trailers over 16 KiB', body => `${oneChunk(body).slice(0, -2)}A: ${'b'.repeat(20_000)}\r\n\r\n`),
  ].map(each => ({ ...each, error: 43101, closes: true })),
];

/** A NewPlant of exactly so many bytes. */
function plantOfBytes(bytes: number): string {
  const frame = '{"id":1,"name":""}';
  return frame.replace('""', `"${'a'.repeat(bytes - frame.length)}"`);
}
