import type { ErrorBody } from '../../contract/errors.ts';
import { jsonMembers } from '../../contract/json-members.ts';
import { type NewPlantReading, readNewPlantText } from '../../contract/plant.ts';
import { Failure } from '../failure.ts';
import { ROW_LENGTH_MAX } from './limits.ts';
import { HARMLESS, type PlantRow, type PlantRows, tooLong } from './plant-row.ts';

/** The members that a rejects file adds; those of an earlier one are replaced. */
const REASON_MEMBERS = ['row', 'error', 'message'];

/** Cuts the text of a file into values as they were written, which need not be JSON. */
interface Splitter {
  /** Takes the next piece, cut anywhere, and hands out the values that end in it. */
  feed(piece: string): Generator<JsonRow, void, undefined>;
  /** Takes note that the file ends, and hands out what ends with it. */
  end(): Iterable<JsonRow>;
}

/**
 * Reads the plants of a JSON Lines file, a value on every line; empty lines are skipped but counted.
 *
 * @param name how messages call the file
 * @throws {Failure} when a line is too long, with all rows before handed on then, or when lines are no whole values
 */
export async function* jsonLinesRows(name: string, texts: AsyncIterable<string>): PlantRows {
  for await (const rows of jsonRows(new LinesSplitter(name), texts)) {
    // One object over many lines, or many of them: each line would be refused with a reason that does not help.
    if (rows[0]?.number === 1 && rows[0].text === '{') {
      throw new Failure(
        `${name} is neither JSON Lines nor a JSON array: a plant goes over several lines in it; put each on one line, ` +
          'or all into one array',
      );
    }
    yield rows;
  }
}

/**
 * Reads the plants of a file that is one JSON array.
 *
 * @param name how messages call the file, whose first character but white space is `[`
 * @throws {Failure} when an element is too long, the array never ends or text follows it; all rows before have been
 *   handed on then
 */
export function jsonArrayRows(name: string, texts: AsyncIterable<string>): PlantRows {
  return jsonRows(new ArraySplitter(name), texts);
}

async function* jsonRows(
  splitter: Splitter,
  texts: AsyncIterable<string>,
): AsyncGenerator<JsonRow[], void, undefined> {
  for await (const text of texts) yield* batch(splitter.feed(text));
  yield* batch(splitter.end());
}

/** All rows of one piece at once; if one is broken, first those before it. */
function* batch(values: Iterable<JsonRow>): Generator<JsonRow[], void, undefined> {
  const rows: JsonRow[] = [];
  try {
    for (const value of values) rows.push(value);
  } catch (error) {
    yield rows;
    throw error;
  }
  yield rows;
}

class LinesSplitter implements Splitter {
  readonly #fileName: string;
  #line = '';
  #number = 0;

  constructor(fileName: string) {
    this.#fileName = fileName;
  }

  *feed(piece: string): Generator<JsonRow, void, undefined> {
    for (const [index, part] of piece.split('\n').entries()) {
      if (index > 0) yield* this.end();
      this.#line += part;
    }
    if (this.#line.length > ROW_LENGTH_MAX)
      throw tooLong(`${this.#fileName}: line ${this.#number + 1}`, 'quote or bracket');
  }

  *end(): Generator<JsonRow, void, undefined> {
    const text = trimJsonSpace(this.#line);
    this.#line = '';
    this.#number++;
    if (text !== '') yield new JsonRow(this.#number, text);
  }
}

/**
 * Follows strings and nesting, which is enough to find the commas between elements (RFC 8259 section 5) and needs no
 * recursion; an element that is not JSON is found when it is read. Unlike `jsonMembers` it may stop at any character.
 */
class ArraySplitter implements Splitter {
  readonly #fileName: string;
  #element = '';
  #number = 0;
  /** Brackets and braces that are open; the array's own is the first. */
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  #isClosed = false;

  constructor(fileName: string) {
    this.#fileName = fileName;
  }

  *feed(piece: string): Generator<JsonRow, void, undefined> {
    let start = 0;
    for (let position = 0; position < piece.length; position++) {
      const character = piece[position]!;
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#inString) {
        if (character === '"') this.#inString = false;
        else if (character === '\\') this.#isEscaped = true;
      } else if (this.#isClosed) {
        if (!isJsonSpace(character)) throw this.#goesOn();
      } else if (character === '"') this.#inString = true;
      else if (character === '[' || character === '{') {
        if (this.#depth === 0) start = position + 1;
        this.#depth++;
      } else if (character === ',' && this.#depth === 1) {
        yield this.#take(piece.slice(start, position));
        start = position + 1;
      } else if (character === ']' && this.#depth === 1) {
        this.#isClosed = true;
        const last = this.#take(piece.slice(start, position));
        if (last.number > 1 || last.text !== '') yield last;
        // A brace alone cannot close the array; it belongs to an element that is not JSON.
      } else if ((character === ']' || character === '}') && this.#depth > 1) this.#depth--;
    }
    if (this.#depth === 0 || this.#isClosed) return;
    this.#element += piece.slice(start);
    if (this.#element.length > ROW_LENGTH_MAX)
      throw tooLong(`${this.#fileName}: element ${this.#number + 1}`, 'quote or bracket');
  }

  end(): Iterable<JsonRow> {
    if (this.#isClosed) return [];
    throw new Failure(
      `${this.#fileName} ends before the JSON array does, in element ${this.#number + 1} or behind it; ${HARMLESS}`,
    );
  }

  #take(end: string): JsonRow {
    const text = trimJsonSpace(this.#element + end);
    this.#element = '';
    return new JsonRow(++this.#number, text);
  }

  #goesOn(): Failure {
    return new Failure(
      `${this.#fileName} goes on after the JSON array, behind element ${this.#number}; ${HARMLESS}`,
    );
  }
}

/** RFC 8259 section 2: ws = *( %x20 / %x09 / %x0A / %x0D ). String.trim would cut more, which is a fault to report. */
function isJsonSpace(character: string | undefined): boolean {
  return character === ' ' || character === '\t' || character === '\n' || character === '\r';
}

function trimJsonSpace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isJsonSpace(text[start])) start++;
  while (end > start && isJsonSpace(text[end - 1])) end--;
  return text.slice(start, end);
}

class JsonRow implements PlantRow {
  /** The line, or the element of the array. */
  readonly number: number;
  readonly reading: NewPlantReading;
  readonly text: string;

  constructor(number: number, text: string) {
    this.number = number;
    this.text = text;
    this.reading = readNewPlantText(text);
  }

  rejectsHeader(): string {
    return '';
  }

  /** The reason is added to the text of an object; what is no object becomes the member `text` of one. */
  rejectsLine({ error, message }: ErrorBody): string {
    const reason = `"row":${this.number},"error":${error},"message":${JSON.stringify(message)}}\n`;
    if (!isJsonObject(this.text)) return `{"text":${JSON.stringify(this.text)},${reason}`;

    const members = jsonMembers(this.text);
    if (members.some(({ name }) => REASON_MEMBERS.includes(name))) {
      const kept = members.filter(({ name }) => !REASON_MEMBERS.includes(name));
      return (
        oneLine(`{${kept.map(({ name, valueText }) => `${JSON.stringify(name)}:${valueText},`).join('')}`) +
        reason
      );
    }
    const open = oneLine(this.text.slice(0, this.text.lastIndexOf('}')));
    return `${open}${members.length === 0 ? '' : ','}${reason}`;
  }
}

function isJsonObject(text: string): boolean {
  if (!text.startsWith('{')) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON allows a line break only between its parts, never inside a string, so a blank may take its place. */
function oneLine(json: string): string {
  return json.replace(/[\r\n]+/g, ' ');
}
