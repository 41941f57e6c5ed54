import { readJson, readToEnd } from '../../src/core/contract/json-reader.ts';
import type { CompleteResponse, NoResponse } from './round-trip.ts';
import type { Rule } from './rules.ts';

/** @returns the faults of a response, each in the same words for the same cause */
export function faultsOf(rule: Rule, received: CompleteResponse | NoResponse): string[] {
  if (received.kind === 'noResponse') return [received.message];
  const { status } = received;
  if (isPermittedRejection(rule, status)) return status === 400 ? errorFaults(received) : [];
  if (rule.response === 'a rejection') return [`status ${status} instead of one from 400 to 499`];
  return status === 200 ? plantFaults(received, rule.body) : [`status ${status} instead of 200`];
}

function isPermittedRejection({ response }: Rule, status: number): boolean {
  if (response === 'a Plant or a 411') return status === 411;
  return response !== 'a Plant' && status >= 400 && status <= 499;
}

function plantFaults(received: CompleteResponse, sentText: string): string[] {
  const sent = JSON.parse(sentText.replace('<ID>', '0'));
  return jsonFaults(received, plant => {
    const faults = Object.hasOwn(plant, 'id') ? ['the response has an id, which a Plant has not'] : [];
    const changed = ['name', 'tag'].filter(member => plant[member] !== sent[member]);
    return [...faults, ...changed.map(member => `${member} is not as sent`)];
  });
}

function errorFaults(received: CompleteResponse): string[] {
  return jsonFaults(received, ({ error, message }) => [
    ...(typeof error === 'number' && (error | 0) === error ? [] : ['an Error without an int32 as error']),
    ...(typeof message === 'string' ? [] : ['an Error without a string as message']),
  ]);
}

type Members = Record<string, unknown>;

/** JSON is UTF-8 without a byte order mark (RFC 8259 section 8.1); names are unique (section 4). */
function jsonFaults(
  { headers, body }: CompleteResponse,
  shapeFaults: (members: Members) => string[],
): string[] {
  const type = headers.get('content-type') ?? 'absent';
  // RFC 9110 section 8.3.1: case does not matter; parameters may follow.
  const isJsonType = /^application\/json[ \t]*(?:;|$)/i.test(type);
  const faults = isJsonType ? [] : [`Content-Type ${type} instead of application/json`];
  const text = body.toString();
  const names: string[] = [];
  const isJson = readToEnd(readJson(text, name => names.push(name))) === undefined;
  if (!isJson || !Buffer.from(text).equals(body)) return [...faults, 'a body that is not JSON in UTF-8'];
  const value = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [...faults, 'a body that is not a JSON object'];
  if (new Set(names).size < names.length) faults.push('a body with a repeated member');
  return [...faults, ...shapeFaults(value)];
}
