import { ERRORS, type ErrorBody, type ErrorName } from '../../contract/errors.ts';
import type { Outcome } from '../../contract/plant.ts';
import type { Exchange } from './exchange.ts';
import { Finding } from './rule.ts';

/** @throws {Finding} unless `holds` is true, like every expectation below */
export function expect(
  { sent, received }: Exchange,
  holds: boolean,
  expected: string,
  found: string | undefined,
): asserts holds {
  if (!holds) throw new Finding(`expected ${expected}; found ${found}`, sent, received);
}

export function expectStatus(exchange: Exchange, status: number): void {
  expect(exchange, exchange.status === status, `status ${status}`, String(exchange.status));
}

/**
 * @param expected undefined: the field must be absent
 * @param what description of `expected` for the finding
 */
export function expectHeader(
  exchange: Exchange,
  name: string,
  expected: string | RegExp | undefined,
  what = expected === undefined ? 'no such field' : String(expected),
): void {
  const value = exchange.headers.get(name.toLowerCase());
  const holds = expected instanceof RegExp ? expected.test(value ?? '') : value === expected;
  expect(exchange, holds, `${name}: ${what}`, value ?? 'no such field');
}

/** RFC 9110 section 8.3.1: case does not matter; parameters may follow. */
export function expectJsonMediaType(exchange: Exchange): void {
  expectHeader(exchange, 'Content-Type', /^application\/json[ \t]*(?:;|$)/i, 'application/json');
}

/** @param expected undefined: the member must be absent */
export function expectMember(exchange: Exchange, name: string, expected: unknown): void {
  const body = readObject(exchange);
  const value = Object.hasOwn(body, name) ? body[name] : undefined;
  expect(exchange, value === expected, `${name} ${showValue(expected)}`, `${name} ${showValue(value)}`);
}

/** The body is an Error: `error` an int32, `message` a string. */
export function expectErrorShape(exchange: Exchange): ErrorBody {
  const { error, message } = readObject(exchange);
  const isInt32 = typeof error === 'number' && (error | 0) === error;
  expect(exchange, isInt32, 'error as an int32', showValue(error));
  expect(exchange, typeof message === 'string', 'message as a string', showValue(message));
  return { error, message };
}

export function expectError(exchange: Exchange, name: ErrorName): void {
  const { status, number } = ERRORS[name];
  expectStatus(exchange, status);
  const { error } = expectErrorShape(exchange);
  expect(exchange, error === number, `error ${number}`, `error ${error}`);
}

/** The headers that prove the id, the revision and the outcome of a stored plant. */
export function expectStored(exchange: Exchange, id: bigint, revision: number, outcome: Outcome): void {
  expectStatus(exchange, 200);
  expectHeader(exchange, 'Plant-Id', String(id));
  expectHeader(exchange, 'Plant-Revision', String(revision));
  expectHeader(exchange, 'Plant-Outcome', outcome);
}

/** JSON is UTF-8 (RFC 8259 section 8.1). */
function readObject(exchange: Exchange): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(exchange.body));
  } catch {
    expect(exchange, false, 'a body that is JSON in UTF-8', 'another body');
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  expect(exchange, isObject, 'a JSON object', JSON.stringify(value));
  return value as Record<string, unknown>;
}

function showValue(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value);
}
