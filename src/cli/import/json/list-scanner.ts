import { quoted, visible } from '../../output/visible-text.ts';
import { SEVERAL_LINES } from './json-lines.ts';

/** The list of a GeoJSON FeatureCollection (RFC 7946 section 3.3). */
export const FEATURES = 'features';

const MEMBERS_SHOWN_MAX = 20;
const NAME_LENGTH_MAX = 200;
/** The white space of JSON (RFC 8259 section 2). */
const SPACE = ' \t\n\r';
const OWN_FILE = 'write the list of plants into a file of its own';

/** The list of plants begins, or an element of it begins or ends. */
export interface Mark {
  kind: 'list' | 'element' | 'end of element';
  position: number;
}

/** The list of plants in a text. */
export type PlantList = { kind: 'array' } | { kind: 'member'; name: string };

/**
 * Finds the list of plants in a text, and its elements. The text is an array, or an object with one
 * list of objects. Other lists, such as the `bbox` of GeoJSON, are skipped.
 *
 * It tracks only strings and nesting (RFC 8259 sections 4, 5 and 7), without recursion. The parser
 * later detects invalid elements.
 */
export class ListScanner {
  list: PlantList | undefined;
  /** Elements that have ended. */
  elements = 0;
  /** Why the scanning has ended; undefined if it goes on. */
  fault: string | undefined;
  #place: 'outside' | 'before first element' | 'before element' | 'in element' = 'outside';
  #depth = 0;
  /** The depth of the elements: 1 in an array, 2 in an object. */
  #listDepth = 0;
  #isClosed = false;
  #hasEmptyList = false;
  /** Names of members of the outermost object: the first ones, and `id`. */
  readonly #members = new Set<string>();
  /** The member that is scanned. */
  #member = '';
  /** The last string at depth 1, which a colon makes the name of a member. */
  #string = '';
  #inString = false;
  #isEscaped = false;

  get isInElement(): boolean {
    return this.#place === 'in element';
  }

  /** Whether a text that begins so has a list, perhaps an empty one, and is no plant. */
  get hasList(): boolean {
    const isEmptyList = this.#hasEmptyList && !this.#members.has('id') && !this.#members.has('name');
    return this.list !== undefined || isEmptyList;
  }

  /** The marks in the next chunk of the text. They end at a fault. */
  *marks(chunk: string): Generator<Mark, void, undefined> {
    for (let position = 0; position < chunk.length; position++) {
      const character = chunk[position]!;
      if (this.#inString) {
        this.#readString(character);
        continue;
      }
      if (SPACE.includes(character)) continue;
      if (this.#isClosed) this.fault = this.#textAfterEnd();
      if (this.#place === 'before first element' && this.#readListStart(character))
        yield { kind: 'list', position };
      if (this.fault !== undefined) return;
      if (this.#place === 'before element') {
        this.#place = 'in element';
        yield { kind: 'element', position };
      }
      const isAtBorder = this.#place === 'in element' && this.#depth === this.#listDepth;
      if (isAtBorder && (character === ',' || character === ']')) {
        this.elements++;
        yield { kind: 'end of element', position };
        this.#place = character === ',' ? 'before element' : 'outside';
      }
      // A brace that closes nothing is part of an invalid element.
      if (!isAtBorder || character !== '}') this.#readToken(character);
    }
  }

  /** @returns a fault of a text that ends here; undefined if it has none */
  faultAtEnd(): string | undefined {
    if (this.fault !== undefined) return this.fault;
    if (this.#place !== 'outside')
      return `ends before the end of the JSON array, at or after element ${this.elements + 1}`;
    if (!this.#isClosed) return 'ends before the end of its JSON object';
    if (this.list === undefined && this.#members.has('id')) return SEVERAL_LINES;
    if (this.list?.kind === 'member' && this.#isPlant(this.list.name))
      return `is a JSON object with an id of its own and the list ${quoted(this.list.name)}; ${OWN_FILE}`;
    if (this.list !== undefined || this.#hasEmptyList) return undefined;
    const members = visible(Array.from(this.#members, member => JSON.stringify(member)).join(', '));
    return (
      `is a JSON object without a list of objects; its members are ${members}; ` +
      'import accepts JSON Lines, one JSON array, an object with one list of plants, and GeoJSON'
    );
  }

  #textAfterEnd(): string {
    if (this.#listDepth === 1)
      return `has text after the end of the JSON array, after element ${this.elements}`;
    return this.list === undefined ? SEVERAL_LINES : 'has text after the end of its JSON object';
  }

  /** Whether the object is a plant, whose lists are no plants. */
  #isPlant(list: string): boolean {
    return this.#members.has('id') && list !== FEATURES;
  }

  /** @returns whether the list of plants begins with this character */
  #readListStart(character: string): boolean {
    const isArray = this.#listDepth === 1;
    this.#hasEmptyList ||= character === ']';
    const isList = isArray ? character !== ']' : character === '{';
    this.#place = isList ? 'before element' : 'outside';
    if (!isList) return false;
    if (this.list?.kind === 'member')
      this.fault = `is a JSON object with two lists, ${quoted(this.list.name)} and ${quoted(this.#member)}; ${OWN_FILE}`;
    else if (!isArray && this.#isPlant(this.#member)) this.fault = SEVERAL_LINES;
    else this.list = isArray ? { kind: 'array' } : { kind: 'member', name: this.#member };
    return this.fault === undefined;
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
      this.#string = '';
    } else if (character === ':' && this.#depth === 1) {
      this.#member = this.#string;
      if (this.#members.size < MEMBERS_SHOWN_MAX || this.#member === 'id') this.#members.add(this.#member);
    } else if (character === '{' || character === '[') {
      this.#depth++;
      if (this.#depth === 1) this.#listDepth = character === '[' ? 1 : 2;
      if (this.#depth === this.#listDepth && character === '[') this.#place = 'before first element';
    } else if (character === '}' || character === ']') {
      this.#depth--;
      this.#isClosed = this.#depth === 0;
    }
  }
}
