import assert from 'node:assert/strict';
import type { RawAnswer } from './raw-connection.ts';

/** What no answer may tell: the software behind it, its causes, its files. */
const NEVER = [
  'fastify',
  'node:',
  'node_modules',
  'sqlite',
  'SQLITE',
  '.ts:',
  'at Object',
  'Unexpected token',
  'undefined',
  '[object',
  'plant_',
];

/** Asserts what every answer of the service has in common. */
export function assertCommonHeaders({ headers }: RawAnswer): void {
  assert.equal(headers.get('content-type'), 'application/json');
  assert.equal(headers.get('x-content-type-options'), 'nosniff');
  assert.equal(headers.get('cache-control'), 'no-store');
  assert.ok(!Number.isNaN(Date.parse(headers.get('date') ?? '')), 'Date, RFC 9110 section 6.6.1');
  assert.equal(headers.get('server'), undefined);
  assert.equal(headers.get('x-powered-by'), undefined);
}

/**
 * Asserts that an answer is the Error of the interface with this number, points to where the documentation page says
 * more of it, and tells no more than it should.
 *
 * @param number status times 100 plus a counter
 */
export function assertErrorAnswer(answer: RawAnswer, number: number): void {
  const context = `${answer.status} ${answer.body}`;
  assert.equal(answer.status, Math.floor(number / 100), context);
  assertCommonHeaders(answer);
  const page = number === 40401 ? '/docs' : 'docs';
  assert.equal(answer.headers.get('link'), `<${page}#error-${number}>; rel="help"`);
  const body = JSON.parse(answer.body) as { error: number; message: string };
  assert.deepEqual(Object.keys(body), ['error', 'message']);
  assert.equal(body.error, number, context);
  assert.equal(typeof body.message, 'string');
  assert.notEqual(body.message, '');
  for (const text of NEVER) assert.ok(!answer.body.includes(text), `${text} in ${context}`);
}

/** Asserts that an answer is a Plant with this content and nothing else. */
export function assertPlantAnswer(answer: RawAnswer, plant: { name: string; tag?: string }): void {
  assert.equal(answer.status, 200, `${answer.status} ${answer.body}`);
  assertCommonHeaders(answer);
  assert.deepEqual(JSON.parse(answer.body), plant);
}
