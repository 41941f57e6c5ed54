import assert from 'node:assert/strict';
import type { RawResponse } from './raw-connection.ts';

/** No response may contain names of the software, causes of an error, or file names. */
const NEVER = /node:|node_modules|sqlite|\.ts:|at Object|Unexpected token|undefined|\[object|plant_/i;

export function assertCommonHeaders({ headers }: RawResponse): void {
  assert.equal(headers.get('content-type'), 'application/json');
  const ageMs = Date.now() - Date.parse(headers.get('date') ?? '');
  assert.ok(ageMs >= 0 && ageMs < DATE_AGE_MAX_MS, 'Date, RFC 9110 section 6.6.1');
  assertHardened(headers);
}

/** Far longer than a response takes on a slow machine. */
const DATE_AGE_MAX_MS = 30_000;

export function assertHardened(headers: RawResponse['headers']): void {
  assert.equal(headers.get('x-content-type-options'), 'nosniff');
  assert.equal(headers.get('cache-control'), 'no-store');
  const forbidden = [...headers.keys()].filter(name => FORBIDDEN.test(name));
  assert.deepEqual(forbidden, []);
}

const FORBIDDEN = /^(?:server|x-powered-by|via|vary|access-control-.*)$/;

/**
 * Asserts that a response is an Error of the interface with this number. It links to the error on
 * the documentation page, and reveals nothing else.
 *
 * @param number status times 100 plus a counter
 */
export function assertErrorResponse(response: RawResponse, number: number): void {
  const context = `${response.status} ${response.body}`;
  assert.equal(response.status, Math.floor(number / 100), context);
  assertCommonHeaders(response);
  const page = number === 40401 ? '/docs' : 'docs';
  assert.equal(response.headers.get('link'), `<${page}#error-${number}>; rel="help"`);
  const body = JSON.parse(response.body) as { error: number; message: string };
  assert.deepEqual(Object.keys(body), ['error', 'message']);
  assert.equal(body.error, number, context);
  assert.equal(typeof body.message, 'string');
  assert.notEqual(body.message, '');
  assert.doesNotMatch(response.body, NEVER);
}

export function assertPlantResponse(response: RawResponse, plant: { name: string; tag?: string }): void {
  assert.equal(response.status, 200, `${response.status} ${response.body}`);
  assertCommonHeaders(response);
  assert.deepEqual(JSON.parse(response.body), plant);
}
