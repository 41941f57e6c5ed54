import { makeToken } from '../src/auth/token.ts';
import { chunked, type RequestParts } from './harness/raw-connection.ts';

/** A request that must be refused: what is wrong with it, the error's number, and headers with their exact values. */
export interface RefusedRequest {
  what: string;
  parts: RequestParts;
  error: number;
  /** Names in lower case; undefined where there must be no such field. */
  headers?: Record<string, string | undefined>;
}

/** The limit of the service that these requests go to. */
export const BODY_BYTES_MAX = 1000;
/** Well-formed tokens: two that the service must know as what they are, and one that it must not know. */
export const TOKENS = { expired: makeToken(), revoked: makeToken(), unknown: makeToken() };

const CHALLENGE = 'Bearer realm="plant-store"';
const INVALID_TOKEN = `${CHALLENGE}, error="invalid_token", error_description="the token is unknown, mistyped, expired or revoked"`;
const PLANTS_ALLOW = { allow: 'POST' };
const NO_CREDENTIAL = { 'www-authenticate': CHALLENGE };
const REFUSED = { 'www-authenticate': INVALID_TOKEN };

/** By the rule that refuses them. */
export const REFUSED_REQUESTS: Record<string, RefusedRequest[]> = {
  'a path that is not there is answered 404': [
    {
      what: '/plants/',
      parts: { target: '/plants/' },
      error: 40401,
      headers: { allow: undefined, location: undefined },
    },
    { what: '/Plants', parts: { target: '/Plants' }, error: 40401 },
    { what: '//plants', parts: { target: '//plants' }, error: 40401 },
    { what: '/plants/1', parts: { target: '/plants/1' }, error: 40401 },
    { what: '/', parts: { target: '/', method: 'GET' }, error: 40401 },
    { what: '/plants;a=b', parts: { target: '/plants;a=b' }, error: 40401 },
    { what: '/plants%2F', parts: { target: '/plants%2F' }, error: 40401 },
    { what: '/plants%zz, which is no percent-encoding', parts: { target: '/plants%zz' }, error: 40401 },
    { what: '/%, which is no percent-encoding', parts: { target: '/%' }, error: 40401 },
    { what: '/%ff, which is not UTF-8', parts: { target: '/%ff' }, error: 40401 },
    { what: '/../plants', parts: { target: '/../plants' }, error: 40401 },
    { what: '/__proto__', parts: { target: '/__proto__' }, error: 40401 },
    { what: '/constructor', parts: { target: '/constructor', method: 'GET' }, error: 40401 },
    { what: '/livez of the other listener', parts: { target: '/livez', method: 'GET' }, error: 40401 },
    { what: 'OPTIONS *', parts: { target: '*', method: 'OPTIONS' }, error: 40401 },
    { what: 'a path of 8,000 characters', parts: { target: `/${'a'.repeat(8000)}` }, error: 40401 },
    { what: '/docs/', parts: { target: '/docs/', method: 'GET' }, error: 40401 },
    { what: '/openapi.json/', parts: { target: '/openapi.json/', method: 'GET' }, error: 40401 },
  ],

  'a method that the path does not take is answered 405 with Allow': [
    ...['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'].map(method => ({
      what: `${method} /plants`,
      parts: { method },
      error: 40501,
      headers: PLANTS_ALLOW,
    })),
    {
      what: 'GET /plants?id=1',
      parts: { method: 'GET', target: '/plants?id=1' },
      error: 40501,
      headers: PLANTS_ALLOW,
    },
    ...['POST', 'PUT', 'DELETE', 'OPTIONS'].flatMap(method =>
      ['/openapi.json', '/docs'].map(target => ({
        what: `${method} ${target}`,
        parts: { method, target },
        error: 40501,
        headers: { allow: 'GET, HEAD' },
      })),
    ),
  ],

  // RFC 6750 section 3.1: no error code where the request lacks any authentication information.
  'a request without a bearer token is answered 401, and the challenge names no error': [
    { what: 'no Authorization', parts: authorization(null), error: 40101, headers: NO_CREDENTIAL },
    { what: 'an empty Authorization', parts: authorization(''), error: 40101, headers: NO_CREDENTIAL },
    { what: 'Bearer alone', parts: authorization('Bearer'), error: 40101, headers: NO_CREDENTIAL },
    { what: 'the scheme Basic', parts: authorization('Basic YTpi'), error: 40101, headers: NO_CREDENTIAL },
    {
      what: 'a token without its scheme',
      parts: authorization(TOKENS.unknown),
      error: 40101,
      headers: NO_CREDENTIAL,
    },
    {
      what: 'two tokens in one field',
      parts: authorization('Bearer a b'),
      error: 40101,
      headers: NO_CREDENTIAL,
    },
    {
      what: 'two credentials in one field',
      parts: authorization('Bearer a, Bearer b'),
      error: 40101,
      headers: NO_CREDENTIAL,
    },
    { what: 'a tab behind Bearer', parts: authorization('Bearer\ta'), error: 40101, headers: NO_CREDENTIAL },
    {
      what: 'a character that no token has',
      parts: authorization('Bearer "a"'),
      error: 40101,
      headers: NO_CREDENTIAL,
    },
    {
      what: 'a token in the query',
      parts: { ...authorization(null), target: '/plants?access_token=a' },
      error: 40101,
      headers: NO_CREDENTIAL,
    },
    {
      what: 'a proxy’s field',
      parts: { headers: { Authorization: null, 'Proxy-Authorization': 'Bearer a' } },
      error: 40101,
      headers: NO_CREDENTIAL,
    },
  ],

  'a token that is not in force is answered 401 with invalid_token': [
    { what: 'no token of ours', parts: authorization('Bearer abc'), error: 40102, headers: REFUSED },
    {
      what: 'one character of a known token changed',
      parts: authorization(`Bearer ${TOKENS.expired.slice(0, -1)}-`),
      error: 40102,
      headers: REFUSED,
    },
    {
      what: 'a well-formed token nobody made',
      parts: authorization(`Bearer ${TOKENS.unknown}`),
      error: 40102,
      headers: REFUSED,
    },
    {
      what: 'an expired token',
      parts: authorization(`Bearer ${TOKENS.expired}`),
      error: 40102,
      headers: REFUSED,
    },
    {
      what: 'a revoked token',
      parts: authorization(`Bearer ${TOKENS.revoked}`),
      error: 40102,
      headers: REFUSED,
    },
    {
      what: 'a token of 10,000 characters',
      parts: authorization(`Bearer ${'a'.repeat(10_000)}`),
      error: 40102,
      headers: REFUSED,
    },
  ],

  'a body that is not application/json in UTF-8 as it stands is answered 415': [
    { what: 'no Content-Type', parts: contentType(null), error: 41501 },
    { what: 'an empty Content-Type', parts: contentType(''), error: 41501 },
    { what: 'text/plain', parts: contentType('text/plain'), error: 41501 },
    { what: 'application/jsonx', parts: contentType('application/jsonx'), error: 41501 },
    { what: 'application/plant+json', parts: contentType('application/plant+json'), error: 41501 },
    { what: 'a form', parts: contentType('application/x-www-form-urlencoded'), error: 41501 },
    { what: 'charset=utf-16', parts: contentType('application/json; charset=utf-16'), error: 41501 },
    {
      what: 'charset="iso-8859-1"',
      parts: contentType('application/json;charset="iso-8859-1"'),
      error: 41501,
    },
    {
      what: 'two media types in one field',
      parts: contentType('application/json, text/plain'),
      error: 41501,
    },
    {
      what: 'two Content-Type fields',
      parts: contentType(['application/json', 'application/json']),
      error: 41501,
    },
    { what: 'no media type', parts: contentType('json'), error: 41501 },
    { what: 'Content-Encoding: gzip', parts: { headers: { 'Content-Encoding': 'gzip' } }, error: 41502 },
    {
      what: 'Content-Encoding: identity',
      parts: { headers: { 'Content-Encoding': 'identity' } },
      error: 41502,
    },
    { what: 'an empty Content-Encoding', parts: { headers: { 'Content-Encoding': '' } }, error: 41502 },
  ],

  'a body over the limit is answered 413': [
    { what: 'one byte more', parts: { body: plantOfBytes(1n, BODY_BYTES_MAX + 1) }, error: 41301 },
    { what: 'one byte more, in chunks', parts: chunked(plantOfBytes(1n, BODY_BYTES_MAX + 1)), error: 41301 },
    {
      what: 'a length that says so, and no body yet',
      parts: { headers: { 'Content-Length': '1001' }, body: '' },
      error: 41301,
      headers: { connection: 'close' },
    },
    {
      what: 'a length of 2^53',
      parts: { headers: { 'Content-Length': '9007199254740992' }, body: '' },
      error: 41301,
      headers: { connection: 'close' },
    },
  ],

  'a body that is no NewPlant is answered 400': [
    { what: 'an empty body', parts: { body: '' }, error: 40001 },
    { what: 'no body at all', parts: { body: '', headers: { 'Content-Length': null } }, error: 40001 },
    { what: 'broken JSON', parts: { body: '{"id":1,"name":"secret' }, error: 40001 },
    { what: 'JSON with something behind it', parts: { body: '{"id":1,"name":"A"}{}' }, error: 40001 },
    { what: 'a byte order mark', parts: { body: '\ufeff{"id":1,"name":"A"}' }, error: 40001 },
    { what: 'UTF-16', parts: { body: Buffer.from('{"id":1,"name":"A"}', 'utf16le') }, error: 40001 },
    {
      what: 'bytes that are not UTF-8',
      parts: { body: Buffer.from('{"id":1,"name":"\xff"}', 'latin1') },
      error: 40001,
    },
    { what: 'an array', parts: { body: '[]' }, error: 40002 },
    { what: 'nothing of a NewPlant', parts: { body: '{}' }, error: 40002 },
    { what: 'a member twice', parts: { body: '{"id":1,"id":1,"name":"A"}' }, error: 40002 },
    { what: 'a tag of null', parts: { body: '{"id":1,"name":"A","tag":null}' }, error: 40002 },
    { what: 'U+0000', parts: { body: String.raw`{"id":1,"name":"\u0000"}` }, error: 40002 },
    { what: 'an unpaired surrogate', parts: { body: String.raw`{"id":1,"name":"\ud800"}` }, error: 40002 },
    { what: 'an id beyond int64', parts: { body: '{"id":9223372036854775808,"name":"A"}' }, error: 40002 },
    { what: 'nesting as deep as the body allows', parts: { body: '['.repeat(BODY_BYTES_MAX) }, error: 40001 },
  ],
};

export function authorization(value: string | string[] | null): RequestParts {
  return { headers: { Authorization: value } };
}

export function contentType(value: string | string[] | null): RequestParts {
  return { headers: { 'Content-Type': value } };
}

/** A NewPlant of exactly so many bytes. */
function plantOfBytes(id: bigint, bytes: number): string {
  const frame = `{"id":${id},"name":""}`;
  return frame.replace('""', `"${'a'.repeat(bytes - frame.length)}"`);
}
