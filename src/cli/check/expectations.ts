import { ERRORS, type ErrorBody, type ErrorName } from '../../contract/errors.ts';
import type { Outcome } from '../../contract/plant.ts';
import type { Exchange } from './exchange.ts';
import { Finding } from './rule.ts';

// Each throws a Finding when the response is not as expected.

export function expectStatus(exchange: Exchange, status: number): void {
  if (exchange.status !== status) throw mismatch(exchange, `status ${status}`, String(exchange.status));
}

/** The client is at fault (RFC 9110 section 15.5). */
export function expectClientError(exchange: Exchange): void {
  if (exchange.status < 400 || exchange.status > 499)
    throw mismatch(exchange, 'a status from 400 to 499', String(exchange.status));
}

/** @param what the pattern in words, for the finding */
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

export function expectNoHeader(exchange: Exchange, name: string): void {
  const value = exchange.headers.get(name.toLowerCase());
  if (value !== undefined) throw mismatch(exchange, `no field ${name}`, value);
}

/** RFC 9110 section 8.3.1: case does not matter, and parameters may follow. */
export function expectJsonMediaType(exchange: Exchange): void {
  expectHeader(exchange, 'Content-Type', /^application\/json[ \t]*(?:;|$)/i, 'application/json');
}

/** @param expected undefined: the member must not be there at all */
export function expectMember(exchange: Exchange, name: string, expected: unknown): void {
  const body = readObject(exchange);
  const value = Object.hasOwn(body, name) ? body[name] : undefined;
  if (value !== expected)
    throw mismatch(exchange, `${name} ${showValue(expected)}`, `${name} ${showValue(value)}`);
}

/** The body is an Error: `error` an int32, `message` a string. */
export function expectErrorShape(exchange: Exchange): ErrorBody {
  const { error, message } = readObject(exchange);
  if (typeof error !== 'number' || (error | 0) !== error)
    throw mismatch(exchange, 'error as an int32', showValue(error));
  if (typeof message !== 'string') throw mismatch(exchange, 'message as a string', showValue(message));
  return { error, message };
}

/** The response is this error of the catalogue. */
export function expectError(exchange: Exchange, name: ErrorName): void {
  const { status, number } = ERRORS[name];
  expectStatus(exchange, status);
  const { error } = expectErrorShape(exchange);
  if (error !== number) throw mismatch(exchange, `error ${number}`, `error ${error}`);
}

/** The headers prove that the plant was stored, under which revision, and how. */
export function expectStored(exchange: Exchange, id: bigint, revision: number, outcome: Outcome): void {
  expectStatus(exchange, 200);
  expectHeader(exchange, 'Plant-Id', String(id));
  expectHeader(exchange, 'Plant-Revision', String(revision));
  expectHeader(exchange, 'Plant-Outcome', outcome);
}

/** The finding for an exchange that went another way than expected. */
export function mismatch({ sent, received }: Exchange, expected: string, found: string): Finding {
  return new Finding(`expected ${expected}; found ${found}`, sent, received);
}

/** JSON is UTF-8 (RFC 8259 section 8.1). */
function readObject(exchange: Exchange): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(exchange.body));
  } catch {
    throw mismatch(exchange, 'a body that is JSON in UTF-8', 'another one');
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw mismatch(exchange, 'a JSON object', JSON.stringify(value));
}

function showValue(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value);
}
