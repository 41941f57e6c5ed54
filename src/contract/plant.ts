import { type ErrorName, errorBody, ID_RULE } from './errors.ts';
import { int64FromNumberText } from './int64.ts';
import { readJson, readToEnd, stringOf } from './json-reader.ts';

/** The Plant of the interface: what a 200 answers with. An absent tag stays absent. */
export interface Plant {
  name: string;
  tag?: string;
}

/** The NewPlant of the interface, its id exact. */
export interface NewPlant extends Plant {
  id: bigint;
}

/** What became of a valid plant: a first revision, no change to the latest one, or a further revision. */
export const OUTCOMES = ['created', 'unchanged', 'revised'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** A NewPlant, or the error that names every fault of what was read instead. */
export type NewPlantReading =
  | { plant: NewPlant; error?: never; message?: never }
  | { plant?: never; error: ErrorName; message: string };

// RFC 8259 section 8.1: UTF-8, and no byte order mark; ignoreBOM leaves one in the text, where it is refused.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const NOT_UTF8 = reject('notJson', ['the body is not UTF-8']);
const NAMES_IN_SET_MAX = 2 ** 18;
/** What begins a JSON text that is an object. */
const OBJECT = /^[ \t\n\r]*\{/;

/**
 * The shape nearly every body has: id, name and perhaps tag in this order, an id of at most 18 plain digits and
 * no escape in the texts. What matches is exact as it stands: 18 digits are within 64 bits, no member repeats, and
 * decoded UTF-8 holds no unpaired surrogate. It reads a body three times as fast as JSON.parse alone.
 */
const PLAIN_BODY = new RegExp(
  String.raw`^ \{ "id" : (-?(?:0|[1-9][0-9]{0,17})) , "name" : TEXT (?:, "tag" : TEXT )?\} $`
    .replaceAll('TEXT', String.raw`"([^"\\\u0000-\u001f]*)"`)
    // Every blank stands for white space of any length.
    .replaceAll(' ', String.raw`[ \t\n\r]*`),
);

/**
 * Reads a request body as a NewPlant, exact to the digit, and names every fault of it at once.
 *
 * @returns the plant; or `notJson` or `notNewPlant` with a message for a person
 */
export function readNewPlant(bytes: Uint8Array): NewPlantReading {
  const text = decoded(bytes);
  return text === undefined ? NOT_UTF8 : readNewPlantText(text);
}

/** Reads a long body as {@link readNewPlant} does, and yields after each slice of it. */
export function* readNewPlantInSlices(bytes: Uint8Array): Generator<undefined, NewPlantReading, undefined> {
  const text = decoded(bytes);
  return text === undefined ? NOT_UTF8 : yield* readAnyBody(text);
}

/** Reads the text of a request body as {@link readNewPlant} reads its bytes. */
export function readNewPlantText(text: string): NewPlantReading {
  const plain = PLAIN_BODY.exec(text);
  // Text that was decoded here is always well formed; text from elsewhere may hold half a character.
  if (plain !== null && text.isWellFormed()) {
    const [, id, name, tag] = plain as unknown as [string, string, string, string | undefined];
    return { plant: tag === undefined ? { id: BigInt(id), name } : { id: BigInt(id), name, tag } };
  }
  return readToEnd(readAnyBody(text));
}

/** @returns undefined where the bytes are not UTF-8 */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

function* readAnyBody(text: string): Generator<undefined, NewPlantReading, undefined> {
  if (text.charCodeAt(0) === 0xfeff) {
    return reject('notJson', ['the body begins with a byte order mark; send UTF-8 without one']);
  }
  const names = new Names();
  /** The values of id, name and tag, as they are written. */
  const texts = new Map<string, string>();
  const faults = new Set<string>();
  const isJson = yield* readJson(text, (name, valueText) => {
    const isKnown = name === 'id' || name === 'name' || name === 'tag';
    if (isKnown) texts.set(name, valueText);
    // No other is named: a client may have put its token there, and a response repeats no token.
    const shown = isKnown ? `"${name}"` : 'a member other than id, name and tag';
    if (!names.add(name)) faults.add(`${shown} is given more than once`);
  });
  if (!isJson) return reject('notJson', [errorBody('notJson').message]);
  if (!OBJECT.test(text)) return reject('notNewPlant', ['the body must be a JSON object with id and name']);
  const [name, tag] = [texts.get('name'), texts.get('tag')].map(stringOrNull);
  return checkNewPlant({ idText: texts.get('id'), name, tag }, [...faults]);
}

/** @returns null for a value that is no string; what else it is makes no difference */
function stringOrNull(valueText: string | undefined): string | null | undefined {
  if (valueText === undefined) return undefined;
  return valueText.startsWith('"') ? stringOf(valueText) : null;
}

/** The names of members. They are in several sets, since a set of a million stops the program for 50 ms as it grows. */
class Names {
  readonly #sets = [new Set<string>()];

  /** @returns whether it is new */
  add(name: string): boolean {
    if (this.#sets.some(set => set.has(name))) return false;
    if (this.#sets[0]!.size === NAMES_IN_SET_MAX) this.#sets.unshift(new Set());
    this.#sets[0]!.add(name);
    return true;
  }
}

/**
 * Checks what claims to be a NewPlant against its rules.
 *
 * @param candidate with the JSON text of the id, which is undefined when there is none
 * @param faults what was found wrong before; named first
 */
export function checkNewPlant(
  candidate: { idText: string | undefined; name: unknown; tag: unknown },
  faults: string[] = [],
): NewPlantReading {
  const { idText, name, tag } = candidate;
  const id = idText === undefined ? undefined : int64FromNumberText(idText);
  if (idText === undefined) faults.push('id is required');
  else if (id === undefined) faults.push(`id must be ${ID_RULE}`);
  return checkNamedPlant(id, name, tag, faults);
}

/** Checks name and tag as {@link checkNewPlant} does. @param id undefined when a fault of it is among the faults */
export function checkNamedPlant(
  id: bigint | undefined,
  name: unknown,
  tag: unknown,
  faults: string[],
): NewPlantReading {
  if (name === undefined) faults.push('name is required');
  else faults.push(...textFaults('name', name));
  if (tag !== undefined) faults.push(...textFaults('tag', tag));

  if (faults.length > 0) return reject('notNewPlant', faults);
  const plant = { id, name } as NewPlant;
  if (tag !== undefined) plant.tag = tag as string;
  return { plant };
}

/** Text that UTF-8 (a surrogate without its pair) or PostgreSQL (U+0000) cannot hold is refused on every store. */
function textFaults(member: string, value: unknown): string[] {
  if (typeof value !== 'string') return [`${member} must be a string`];
  const faults: string[] = [];
  if (value.includes('\0')) faults.push(`${member} must not contain U+0000`);
  if (!value.isWellFormed()) faults.push(`${member} must not contain an unpaired surrogate`);
  return faults;
}

function reject(error: ErrorName, faults: string[]): NewPlantReading {
  return { error, message: faults.join('; ') };
}

/** Writes the Plant that answers a NewPlant, as JSON. */
export function plantJson(plant: Plant): string {
  const name = JSON.stringify(plant.name);
  return plant.tag === undefined ? `{"name":${name}}` : `{"name":${name},"tag":${JSON.stringify(plant.tag)}}`;
}

/** Writes a NewPlant as JSON, its id digit for digit. */
export function newPlantJson(plant: NewPlant): string {
  return `{"id":${plant.id},${plantJson(plant).slice(1)}`;
}
