import { stringOf } from '../../../src/core/contract/json-reader.ts';
import { quoted, visible } from '../../../src/formats/visible-text.ts';
import { REASON_NAMES } from '../rejects/rejects-format.ts';
import { LineCounter } from '../text/line-ends.ts';
import { OUTER_SPACE, SEVERAL_LINES } from './json-lines.ts';

/** The list of a GeoJSON FeatureCollection (RFC 7946 section 3.3). */
export const FEATURES = 'features';

const MEMBERS_SHOWN_MAX = 20;
/** Code units of the name of a member in the file, where an escape such as `\u00e9` takes six. */
const NAME_LENGTH_MAX = 1_200;
/** The white space of JSON (RFC 8259 section 2). */
const SPACE = ' \t\n\r';
const OWN_FILE = 'write the list of plants into a file of its own';

/** An element of the list of plants. */
interface ListElement {
  /** Counted from 1. */
  number: number;
  /** Number of the line on which it begins. */
  line: number;
  /** Its exact text, without white space around it. */
  text: string;
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
  /** Why the scanning has ended; undefined if it goes on. */
  fault: string | undefined;
  readonly #lines: LineCounter;
  /** The last element. White space before it may have any length, so it is not stored. */
  #element: ListElement = { number: 0, line: 0, text: '' };
  #place: 'outside' | 'before first element' | 'before element' | 'in element' = 'outside';
  #depth = 0;
  /** The depth of the elements: 1 in an array, 2 in an object. */
  #listDepth = 0;
  #isClosed = false;
  /** The name of an empty list, by preference that of GeoJSON. */
  #emptyList: string | undefined;
  /** A second list of objects. */
  #secondList: string | undefined;
  /** Members of which a plant has at least one, and the object around a list has none. */
  readonly #plantMembers: ReadonlySet<string>;
  /** Names of members of the outermost object: the first ones, and those that show a plant. */
  readonly #members = new Set<string>();
  /** The member that is scanned. */
  #member = '';
  /** The last string at depth 1, which a colon makes the name of a member. */
  #string = '';
  #inString = false;
  #isEscaped = false;

  /** @param line number of the first line of the text */
  constructor(plantMembers: ReadonlySet<string>, line = 1) {
    this.#plantMembers = plantMembers;
    this.#lines = new LineCounter(line);
  }

  /** The element that is not complete yet; undefined between elements. */
  get incomplete(): ListElement | undefined {
    return this.#place === 'in element' ? this.#element : undefined;
  }

  /** Whether a text that begins so has a list, perhaps an empty one, and is no plant. */
  get hasList(): boolean {
    return (this.list !== undefined || this.#emptyList !== undefined) && !this.#isPlant;
  }

  /** The elements that end in the next chunk of the text, up to a fault. */
  *elements(chunk: string): Generator<ListElement, void, undefined> {
    let start = 0;
    const readTo = (end: number): void => {
      const part = chunk.slice(start, end);
      start = end;
      this.#lines.add(part);
      if (this.#place === 'in element') this.#element.text += part;
    };
    for (let position = 0; position < chunk.length; position++) {
      const character = chunk[position]!;
      if (this.#inString) {
        this.#readString(character);
        continue;
      }
      if (SPACE.includes(character)) continue;
      if (this.#isClosed) this.fault = this.#textAfterEnd();
      if (this.#place === 'before first element') this.#readListStart(character);
      if (this.fault !== undefined) return;
      if (this.#place === 'before element') {
        readTo(position);
        this.#place = 'in element';
        this.#element = { number: this.#element.number + 1, line: this.#lines.line, text: '' };
      }
      const isAtBorder = this.#place === 'in element' && this.#depth === this.#listDepth;
      if (isAtBorder && (character === ',' || character === ']')) {
        readTo(position);
        this.#place = character === ',' ? 'before element' : 'outside';
        yield { ...this.#element, text: this.#element.text.replace(OUTER_SPACE, '') };
      }
      // A brace that closes nothing is part of an invalid element.
      if (!isAtBorder || character !== '}') this.#readToken(character);
    }
    readTo(chunk.length);
  }

  /** @returns a fault of a text that ends here; undefined if it has none */
  faultAtEnd(): string | undefined {
    if (this.fault !== undefined) return this.fault;
    if (this.#place !== 'outside') {
      const number = this.#element.number + (this.#place === 'in element' ? 0 : 1);
      return `ends before the end of the JSON array, at or after element ${number}`;
    }
    if (!this.#isClosed) return 'ends before the end of its JSON object';
    if (this.#isPlant) return this.#plantFault();
    if (this.list?.kind === 'member' && this.#secondList !== undefined)
      return `is a JSON object with two lists, ${quoted(this.list.name)} and ${quoted(this.#secondList)}; ${OWN_FILE}`;
    if (this.list !== undefined || this.#emptyList !== undefined) return undefined;
    const members = visible(Array.from(this.#members, member => JSON.stringify(member)).join(', '));
    return (
      `is a JSON object without a list of objects; its members are ${members}; ` +
      'import accepts JSON Lines, one JSON array, an object with one list of plants, and GeoJSON'
    );
  }

  #textAfterEnd(): string {
    if (this.#listDepth === 1)
      return `has text after the end of the JSON array, after element ${this.#element.number}`;
    return this.list === undefined ? SEVERAL_LINES : 'has text after the end of its JSON object';
  }

  /**
   * Whether the text is a plant, whose lists contain no plants. A rejected plant has the members of
   * the reason. The object of GeoJSON can have a name or an id of its own.
   */
  get #isPlant(): boolean {
    if (this.list?.kind === 'array') return false;
    if (REASON_NAMES.every(name => this.#members.has(name))) return true;
    return (this.list?.name ?? this.#emptyList) !== FEATURES && this.#plantMember !== undefined;
  }

  get #plantMember(): string | undefined {
    return Array.from(this.#plantMembers).find(name => this.#members.has(name));
  }

  #plantFault(): string {
    if (this.list?.kind !== 'member') return SEVERAL_LINES;
    const member = quoted(this.#plantMember ?? REASON_NAMES[0]!);
    return `is a JSON object with the list ${quoted(this.list.name)} and the member ${member} of a plant; ${OWN_FILE}`;
  }

  /** Decides by its first character whether a list is that of the plants. */
  #readListStart(character: string): void {
    const isArray = this.#listDepth === 1;
    this.#place = 'outside';
    if (character === ']' && this.#emptyList !== FEATURES) this.#emptyList = this.#member;
    if (isArray ? character === ']' : character !== '{') return;
    if (this.list !== undefined) {
      this.#secondList ??= this.#member;
      return;
    }
    this.list = isArray ? { kind: 'array' } : { kind: 'member', name: this.#member };
    if (this.#isPlant) this.fault = this.#plantFault();
    else this.#place = 'before element';
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
      this.#member = unescaped(this.#string);
      const showsPlant = this.#plantMembers.has(this.#member) || REASON_NAMES.includes(this.#member);
      if (showsPlant || this.#members.size < MEMBERS_SHOWN_MAX) this.#members.add(this.#member);
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

/** @returns the characters of a JSON string as they are, if they are invalid or incomplete */
function unescaped(characters: string): string {
  try {
    return stringOf(`"${characters}"`);
  } catch {
    return characters;
  }
}
