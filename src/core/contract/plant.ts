import { type ErrorName, errorBody, ID_RULE } from './errors.ts';
import { int64FromNumberText } from './int64.ts';
import { readJson, readToEnd, stringOf } from './json-reader.ts';

/** The Plant of the interface: the body of a 200. An absent tag stays absent. */
export interface Plant {
  name: string;
  tag?: string;
}

/** The NewPlant of the interface, with an exact id. */
export interface NewPlant extends Plant {
  id: bigint;
}

/**
 * The outcome of a valid plant: first revision, same content as the latest, or next revision. A
 * plant that is sent again is `unchanged` only if its content is still the latest.
 */
export const OUTCOMES = ['created', 'unchanged', 'revised'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** A NewPlant, or an error with a message for people that lists every fault of the body. */
export type NewPlantReading =
  | { kind: 'plant'; plant: NewPlant }
  | { kind: 'invalid'; error: ErrorName; message: string };

/** The exact id of a plant, or its fault. */
export type IdReading = { kind: 'id'; id: bigint } | { kind: 'fault'; fault: string };

// `ignoreBOM` leaves a byte order mark in the text, where `readAnyBody` rejects it
// (RFC 8259 section 8.1).
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const NOT_UTF8 = errorReading('notJson', ['the body is not valid UTF-8; encode it as UTF-8']);
const UNQUOTED = 'a JSON number without quotes: ';
/** The beginning of a JSON text that is an object. */
const OBJECT = /^[ \t\n\r]*\{/;

/**
 * The most common form of a body: id, name and an optional tag, without escapes. It needs no more
 * checks: 18 digits fit 64 bits, no member is repeated, and decoded UTF-8 has no unpaired
 * surrogate. It is faster than JSON.parse.
 */
const PLAIN_BODY = new RegExp(
  String.raw`^ \{ "id" : (-?(?:0|[1-9][0-9]{0,17})) , "name" : TEXT (?:, "tag" : TEXT )?\} $`
    .replaceAll('TEXT', String.raw`"([^"\\\u0000-\u001f]*)"`)
    // In the pattern, a space means any white space of JSON.
    .replaceAll(' ', String.raw`[ \t\n\r]*`),
);

/** Reads a request body as a NewPlant with its exact id, or lists all its faults. */
export function readNewPlant(bytes: Uint8Array): NewPlantReading {
  const text = decoded(bytes);
  return text === undefined ? NOT_UTF8 : readNewPlantText(text);
}

/** Reads a long body as {@link readNewPlant} does, and yields after each slice. */
export function* readNewPlantInSlices(bytes: Uint8Array): Generator<undefined, NewPlantReading, undefined> {
  const text = decoded(bytes);
  return text === undefined ? NOT_UTF8 : yield* readAnyBody(text);
}

/** Reads a decoded request body as {@link readNewPlant} does. */
export function readNewPlantText(text: string): NewPlantReading {
  const plain = PLAIN_BODY.exec(text);
  // Text from another source than decoded() may contain an unpaired surrogate.
  if (plain !== null && text.isWellFormed()) {
    const [, id, name, tag] = plain as unknown as [string, string, string, string | undefined];
    return {
      kind: 'plant',
      plant: tag === undefined ? { id: BigInt(id), name } : { id: BigInt(id), name, tag },
    };
  }
  return readToEnd(readAnyBody(text));
}

/** @returns undefined if the bytes are not UTF-8 */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

function* readAnyBody(text: string): Generator<undefined, NewPlantReading, undefined> {
  if (text.charCodeAt(0) === 0xfeff) {
    return errorReading('notJson', ['the body begins with a byte order mark; send UTF-8 without one']);
  }
  const names = new Set<string>();
  /** The values of id, name and tag, as JSON text. */
  const texts = new Map<string, string>();
  const faults = new Set<string>();
  const faultAt = yield* readJson(text, (name, valueText) => {
    const isKnown = name === 'id' || name === 'name' || name === 'tag';
    if (isKnown) texts.set(name, valueText);
    // Other names are not shown: a name may be a token, and a response must not repeat a token.
    const shown = isKnown ? `"${name}"` : 'a member other than id, name and tag';
    if (names.has(name)) faults.add(`${shown} is given more than once`);
    names.add(name);
  });
  if (faultAt !== undefined) return errorReading('notJson', [errorBody('notJson').message]);
  if (!OBJECT.test(text))
    return errorReading('notNewPlant', ['the body must be a JSON object with id and name']);
  const [name, tag] = [texts.get('name'), texts.get('tag')].map(stringOrNull);
  return validateNewPlant(readJsonId(texts.get('id')), name, tag, [...faults]);
}

/** @returns null for every value that is not a string */
function stringOrNull(valueText: string | undefined): string | null | undefined {
  if (valueText === undefined) return undefined;
  return valueText.startsWith('"') ? stringOf(valueText) : null;
}

function readJsonId(valueText: string | undefined): IdReading {
  if (valueText === undefined) return { kind: 'fault', fault: 'id is required' };
  const id = int64FromNumberText(valueText);
  if (id !== undefined) return { kind: 'id', id };
  return { kind: 'fault', fault: `id must be ${valueText.startsWith('"') ? UNQUOTED : ''}${ID_RULE}` };
}

/** Checks the members of a NewPlant. @param faults come first in the message */
export function validateNewPlant(
  idReading: IdReading,
  name: unknown,
  tag: unknown,
  faults: string[] = [],
): NewPlantReading {
  if (idReading.kind === 'fault') faults.push(idReading.fault);
  if (name === undefined) faults.push('name is required');
  else faults.push(...textFaults('name', name));
  if (tag !== undefined) faults.push(...textFaults('tag', tag));

  const hasTypes = typeof name === 'string' && (tag === undefined || typeof tag === 'string');
  if (faults.length > 0 || idReading.kind === 'fault' || !hasTypes)
    return errorReading('notNewPlant', faults);
  const { id } = idReading;
  return { kind: 'plant', plant: tag === undefined ? { id, name } : { id, name, tag } };
}

/** UTF-8 cannot encode an unpaired surrogate, nor PostgreSQL U+0000: every store rejects both. */
function textFaults(member: string, value: unknown): string[] {
  if (typeof value !== 'string') return [`${member} must be a string`];
  const faults: string[] = [];
  if (value.includes('\0')) faults.push(`${member} must not contain U+0000`);
  if (!value.isWellFormed()) faults.push(`${member} must not contain an unpaired surrogate`);
  return faults;
}

function errorReading(error: ErrorName, faults: string[]): NewPlantReading {
  return { kind: 'invalid', error, message: faults.join('; ') };
}

/** Whether both have the same name and tag. A missing tag differs from an empty one. */
export function isSameContent(one: Plant, two: Plant): boolean {
  return one.name === two.name && one.tag === two.tag;
}

/** Writes a Plant as JSON, without the id. */
export function plantJson(plant: Plant): string {
  const name = JSON.stringify(plant.name);
  return plant.tag === undefined ? `{"name":${name}}` : `{"name":${name},"tag":${JSON.stringify(plant.tag)}}`;
}

/** Writes a NewPlant as JSON, with all digits of its id. */
export function newPlantJson(plant: NewPlant): string {
  return `{"id":${plant.id},${plantJson(plant).slice(1)}`;
}
