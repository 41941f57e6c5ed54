import { ERRORS, type ErrorBody, type ErrorName } from '../../contract/errors.ts';
import { readJson, readToEnd } from '../../contract/json-reader.ts';
import type { Outcome } from '../../contract/plant.ts';
import type { Exchange } from './exchange.ts';
import { MESSAGE_LENGTH_MAX } from './limits.ts';
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

/** Status 200, and these members are the same in the Plant as in the text that was sent. */
export function expectSent(exchange: Exchange, text: string, members = ['name', 'tag']): void {
  expectStatus(exchange, 200);
  const sent = JSON.parse(text.replace('<ID>', '0'));
  for (const member of members) expectMember(exchange, member, sent[member]);
}

/** @returns whether the status is from 400 to 499. @throws {Finding} for a 400 without an Error */
export function isRejected(exchange: Exchange): boolean {
  if (exchange.status === 400) expectErrorShape(exchange);
  return exchange.status >= 400 && exchange.status <= 499;
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

/** JSON is UTF-8 without a byte order mark (RFC 8259 section 8.1); names are unique (section 4). */
function readObject(exchange: Exchange): Record<string, unknown> {
  const text = exchange.body.toString();
  const isUtf8 = Buffer.from(text).equals(exchange.body);
  expect(exchange, isUtf8, 'JSON in UTF-8', 'bytes that are not UTF-8');
  expect(exchange, !text.startsWith('\ufeff'), 'JSON without a byte order mark', 'one before it');
  const names: string[] = [];
  const faultAt = readToEnd(readJson(text, name => names.push(name)));
  expect(exchange, faultAt === undefined, 'a body that is JSON', 'a body that is not JSON');
  const value = JSON.parse(text);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  expect(exchange, isObject, 'a JSON object', JSON.stringify(value));
  const unseen = new Set(names);
  const repeated = names.find(name => !unseen.delete(name));
  expect(exchange, repeated === undefined, 'each member once', `${repeated} twice`);
  return value;
}

function showValue(value: unknown): string {
  // Shows no part of a long text: a cut could split a token, which would then not be removed.
  if (typeof value === 'string' && value.length >= MESSAGE_LENGTH_MAX / 5)
    return `of ${value.length} characters`;
  return value === undefined ? 'absent' : JSON.stringify(value);
}
