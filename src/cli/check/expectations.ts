import type { ErrorBody } from '../../contract/errors.ts';
import type { Exchange } from './exchange.ts';
import { Finding } from './finding.ts';

/** @throws {Finding} when the answer has none of these statuses */
export function expectStatus(exchange: Exchange, ...statuses: number[]): void {
  if (!statuses.includes(exchange.status)) {
    throw mismatch(exchange, `status ${statuses.join(' or ')}`, String(exchange.status));
  }
}

/** @throws {Finding} when the answer does not say that the client is at fault (RFC 9110 section 15.5) */
export function expectClientError(exchange: Exchange): void {
  if (exchange.status < 400 || exchange.status > 499)
    throw mismatch(exchange, 'a status from 400 to 499', String(exchange.status));
}

/**
 * @param what the pattern in words, for the finding
 * @throws {Finding} when the field is missing or another value was expected of it
 */
export function expectHeader(
  exchange: Exchange,
  name: string,
  expected: string | RegExp,
  what = String(expected),
): void {
  const value = exchange.headers.get(name.toLowerCase());
  const holds = typeof expected === 'string' ? value === expected : expected.test(value ?? '');
  if (!holds) throw mismatch(exchange, `${name}: ${what}`, value ?? 'no such field');
}

/** @throws {Finding} when the answer has the field */
export function expectNoHeader(exchange: Exchange, name: string): void {
  const value = exchange.headers.get(name.toLowerCase());
  if (value !== undefined) throw mismatch(exchange, `no field ${name}`, value);
}

/** RFC 9110 section 8.3.1: case does not matter, and parameters may follow. @throws {Finding} */
export function expectJsonMediaType(exchange: Exchange): void {
  expectHeader(exchange, 'Content-Type', /^application\/json[ \t]*(?:;|$)/i, 'application/json');
}

/** @returns the body as a JSON object @throws {Finding} when it is none, or not UTF-8 (RFC 8259 section 8.1) */
export function expectObject(exchange: Exchange): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(exchange.body));
  } catch {
    throw mismatch(exchange, 'a body that is JSON in UTF-8', 'another one');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw mismatch(exchange, 'a JSON object', JSON.stringify(value));
  }
  return value as Record<string, unknown>;
}

/** @throws {Finding} when a member of the body is not as expected; undefined: when it is there at all */
export function expectMember(exchange: Exchange, name: string, expected: unknown): void {
  const body = expectObject(exchange);
  const value = Object.hasOwn(body, name) ? body[name] : undefined;
  if (value !== expected)
    throw mismatch(exchange, `${name} ${showValue(expected)}`, `${name} ${showValue(value)}`);
}

/** @throws {Finding} when the body is not an Error: `error` an int32, `message` a string */
export function expectErrorShape(exchange: Exchange): ErrorBody {
  const { error, message } = expectObject(exchange);
  if (typeof error !== 'number' || (error | 0) !== error)
    throw mismatch(exchange, 'error as an int32', showValue(error));
  if (typeof message !== 'string') throw mismatch(exchange, 'message as a string', showValue(message));
  return { error, message };
}

/** The finding for an exchange that went another way than expected. */
export function mismatch({ sent, received }: Exchange, expected: string, found: string): Finding {
  return new Finding(`expected ${expected}; found ${found}`, sent, received);
}

function showValue(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value);
}
