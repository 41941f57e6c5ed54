import { readJson, readToEnd } from '../../../core/contract/json-reader.ts';
import { Failure } from '../../output/failure.ts';
import { quoted, visible } from '../../output/visible-text.ts';
import { LineCounter, type Texts } from '../text/line-ends.ts';
import type { TextOpening } from '../text/text-opening.ts';
import { SEVERAL_LINES } from './json-rows.ts';

/** The list of a GeoJSON FeatureCollection (RFC 7946 section 3.3). */
export const FEATURES = 'features';

const MEMBERS_SHOWN_MAX = 20;
const NAME_LENGTH_MAX = 200;
/** The longest token of JSON that is no prefix of another valid token, such as `fals` or `\u00e`. */
const CUT_TOKEN_LENGTH_MAX = 6;
const LINE_END = /[\r\n]/;

/** The first element of a list of objects, or the end of the list. */
type Border =
  | { kind: 'start'; position: number; member: string }
  /** The position is that after the closing bracket. */
  | { kind: 'end'; position: number };

/**
 * Finds the members of the outermost object, and those that are lists of objects. Other lists, such
 * as the `bbox` of GeoJSON, are skipped. Like the scanner of arrays, it tracks only strings and
 * nesting, without recursion.
 */
class ObjectScanner {
  readonly members = new Set<string>();
  hasEmptyList = false;
  isClosed = false;
  /** Whether text other than white space follows the object. */
  hasMore = false;
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** The last string in the outermost object, which a colon makes the name of a member. */
  #string = '';
  #member = '';
  /** A list is `new` until its first element shows what it contains. */
  #list: 'none' | 'new' | 'objects' = 'none';

  /** The borders of lists of objects in the next chunk of the text. */
  *borders(chunk: string): Generator<Border, void, undefined> {
    for (let position = 0; position < chunk.length; position++) {
      const character = chunk[position]!;
      if (this.#inString) this.#readString(character);
      else if (character > ' ') {
        this.hasMore ||= this.isClosed;
        if (this.#list === 'new') {
          this.#list = character === '{' ? 'objects' : 'none';
          this.hasEmptyList ||= character === ']';
          if (character === '{') yield { kind: 'start', position, member: this.#member };
        }
        this.#readToken(character);
        if (this.#list !== 'objects' || this.#depth > 1) continue;
        this.#list = 'none';
        yield { kind: 'end', position: position + 1 };
      }
    }
  }

  #readString(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === '\\') this.#isEscaped = true;
    else if (character === '"') this.#inString = false;
    if (this.#inString && this.#depth === 1 && this.#string.length < NAME_LENGTH_MAX)
      this.#string += character;
  }

  #readToken(character: string): void {
    if (character === '"') {
      this.#inString = true;
      if (this.#depth === 1) this.#string = '';
    } else if (character === ':' && this.#depth === 1) {
      this.#member = this.#string;
      if (this.members.size < MEMBERS_SHOWN_MAX || this.#member === 'id') this.members.add(this.#member);
    } else if (character === '{' || character === '[') {
      this.#depth++;
      if (this.#depth === 2 && character === '[') this.#list = 'new';
    } else if (character === '}' || character === ']') {
      this.#depth--;
      this.isClosed ||= this.#depth === 0;
    }
  }
}

/** Whether the object is a plant, whose lists are no plants. */
function isPlant({ members }: ObjectScanner, list: string | undefined): boolean {
  return members.has('id') && list !== FEATURES;
}

/** Whether a text begins with an object that has a list of objects, and is no plant. */
function beginsWithList(text: string): boolean {
  const scanner = new ObjectScanner();
  for (const border of scanner.borders(text))
    return border.kind === 'start' && !isPlant(scanner, border.member);
  return scanner.hasEmptyList && !scanner.members.has('id') && !scanner.members.has('name');
}

/** @returns the index of the first fault; its length if the text is incomplete, or JSON */
function faultIndex(text: string): number {
  return readToEnd(readJson(text, () => {})) ?? text.length;
}

/** Whether a file that begins with `{` is one object with a list, and not JSON Lines. */
export async function isOneObject(opening: TextOpening): Promise<boolean> {
  await opening.extend(text => LINE_END.test(text));
  const line = opening.text.split(LINE_END, 1)[0]!;
  const isWhole = opening.isAll || line.length < opening.text.length;
  if (!isWhole) return beginsWithList(opening.text);
  const hasMore = (text: string): boolean => /\S/.test(text.slice(line.length));
  if (readToEnd(readJson(line, () => {})) === undefined) {
    if (!beginsWithList(line)) return false;
    await opening.extend(hasMore);
    return !hasMore(opening.text);
  }
  // The object goes on in the next line, or the first line of JSON Lines has a fault.
  await opening.extend(() => false);
  return hasMore(opening.text) && faultIndex(opening.text) >= opening.text.length - CUT_TOKEN_LENGTH_MAX;
}

/** The list of an object. */
export interface ObjectList {
  member: string;
  /** Number of the line on which its first element begins. */
  line: number;
  /** The list as a JSON array. */
  texts: Texts;
}

/**
 * Finds the one list of objects in an object, chunk by chunk.
 *
 * @param firstLine number of the first line of the text
 * @returns undefined if its list is empty
 * @throws {Failure} if there is none. The texts of the list end with a Failure if there is a second
 *   one, or if the object is a plant
 */
export async function objectList(
  name: string,
  texts: Texts,
  firstLine: number,
): Promise<ObjectList | undefined> {
  const scanner = new ObjectScanner();
  const lines = new LineCounter(firstLine);
  for (let next = await texts.next(); !next.done; next = await texts.next()) {
    const text = next.value;
    const borders = scanner.borders(text);
    const border = borders.next();
    if (!border.done && border.value.kind === 'start') {
      const { position, member } = border.value;
      if (isPlant(scanner, member)) throw new Failure(`${name} ${SEVERAL_LINES}`);
      const line = lines.lineAfter(text.slice(0, position));
      const scan = { scanner, borders, member };
      return { member, line, texts: textsOfList(name, text, position, texts, scan) };
    }
    if (scanner.hasMore) throw new Failure(`${name} ${SEVERAL_LINES}`);
    lines.add(text);
  }
  if (!scanner.isClosed) throw new Failure(`${name} ends before the end of its JSON object`);
  if (scanner.members.has('id')) throw new Failure(`${name} ${SEVERAL_LINES}`);
  if (scanner.hasEmptyList) return undefined;
  throw new Failure(
    `${name} is a JSON object without a list of objects; its members are ${shownMembers(scanner)}; ` +
      'import accepts JSON Lines, one JSON array, an object with one list of plants, and GeoJSON',
  );
}

/** The scanning of an object up to the first element of its list. */
interface Scan {
  scanner: ObjectScanner;
  /** The borders in the rest of the first text. */
  borders: Iterable<Border>;
  member: string;
}

async function* textsOfList(
  name: string,
  firstText: string,
  start: number,
  rest: Texts,
  { scanner, borders, member }: Scan,
): Texts {
  await using texts = rest;
  let isOpen = true;
  function* parts(text: string, from: number, ends: Iterable<Border>): Generator<string> {
    for (const border of ends) {
      if (border.kind === 'start')
        throw new Failure(
          `${name} is a JSON object with two lists, ${quoted(member)} and ${quoted(border.member)}; ` +
            'write the list of plants into a file of its own',
        );
      isOpen = false;
      yield text.slice(from, border.position);
    }
    if (scanner.hasMore) throw new Failure(`${name} has text after the end of its JSON object`);
    if (isOpen) yield text.slice(from);
  }
  yield '[';
  yield* parts(firstText, start, borders);
  for await (const text of texts) yield* parts(text, 0, scanner.borders(text));
  // An incomplete list is reported by the reader of the array.
  if (isOpen) return;
  if (!scanner.isClosed) throw new Failure(`${name} ends before the end of its JSON object`);
  if (isPlant(scanner, member))
    throw new Failure(
      `${name} is a JSON object with an id of its own and the list ${quoted(member)}; ` +
        'write the list of plants into a file of its own',
    );
}

function shownMembers({ members }: ObjectScanner): string {
  return visible(Array.from(members, member => JSON.stringify(member)).join(', '));
}
