import { Failure } from '../../output/failure.ts';
import { type PlantRow, type PlantRows, ROW_LENGTH_MAX, tooLong } from '../rows/plant-row.ts';
import { countLineEnds } from '../text/line-ends.ts';
import type { Place } from './json-row.ts';

/**
 * The white space around a value (RFC 8259 section 2). `String.trim` would remove more characters.
 * Without the lookbehind, the time would be quadratic in the white space.
 */
const OUTER_SPACE = /^[ \t\n\r]+|(?<![ \t\n\r])[ \t\n\r]+$/g;

/** White space at the start, except a last CR that may be half of a CRLF. */
const OPENING_SPACE = /^(?:[ \t\n]|\r(?!$))*/;

export const SEVERAL_LINES =
  'is neither JSON Lines nor a JSON array: a plant spans several lines; write each plant on one line, ' +
  'or all plants in one array';

/**
 * Reads the plants of a JSON Lines file. Empty lines are skipped but counted.
 *
 * @param line number of the first line of the text
 * @param rowOf makes the row of a line
 */
export async function* jsonLinesRows(
  name: string,
  texts: AsyncIterable<string>,
  line: number,
  rowOf: (place: Place, text: string) => PlantRow,
): PlantRows {
  let number = line - 1;
  let isFirst = true;
  /** The start of an incomplete line. */
  let rest = '';
  for await (const text of withLineEnd(texts)) {
    const lines = text.split('\n');
    lines[0] = rest + lines[0];
    rest = lines.pop()!;
    const rows: PlantRow[] = [];
    for (const each of lines) {
      number++;
      const value = each.replace(OUTER_SPACE, '');
      // Otherwise the import would reject all lines of the file, with a confusing message.
      if (isFirst && value === '{') throw new Failure(`${name} ${SEVERAL_LINES}`);
      isFirst = false;
      if (value !== '') rows.push(rowOf({ number, line: number, name: `line ${number}` }, value));
    }
    yield rows;
    if (rest.length > ROW_LENGTH_MAX)
      throw new Failure(`${name}: line ${number + 1} ${tooLong('quote or bracket')}`);
  }
}

/** Adds a line end, since the last line of a file may lack it. */
async function* withLineEnd(texts: AsyncIterable<string>): AsyncIterable<string> {
  yield* texts;
  yield '\n';
}

/**
 * Reads the plants of one JSON array. The first character that is not white space is `[`.
 *
 * @param line number of the first line of the text
 * @param rowOf makes the row of an element
 */
export async function* jsonArrayRows(
  name: string,
  texts: AsyncIterable<string>,
  line: number,
  rowOf: (place: Place, text: string) => PlantRow,
): PlantRows {
  const scanner = new ArrayScanner();
  let number = 0;
  /** The line of the start of `rest`. */
  let lineOfRest = line;
  /** The start of an incomplete element. */
  let rest = '';
  let isClosed = false;
  for await (const text of texts) {
    const rows: PlantRow[] = [];
    let start = 0;
    for (const end of scanner.borders(text)) {
      if (isClosed) break;
      const element = rest + text.slice(start, end);
      if (text[end] !== '[') {
        const value = element.replace(OUTER_SPACE, '');
        isClosed = text[end] === ']';
        number++;
        const elementLine = lineOfRest + countLineEnds(/^\s*/.exec(element)![0]);
        const place = { number, line: elementLine, name: `line ${elementLine} (element ${number})` };
        // An empty array has no text before its end.
        if (!isClosed || number > 1 || value !== '') rows.push(rowOf(place, value));
      }
      lineOfRest += countLineEnds(element);
      rest = '';
      start = end + 1;
    }
    yield rows;
    if (!isClosed) {
      const isStart = rest.length <= 1;
      rest += text.slice(start);
      // White space before an element may have any length, so it is not stored.
      const space = isStart ? OPENING_SPACE.exec(rest)![0] : '';
      lineOfRest += countLineEnds(space);
      rest = rest.slice(space.length);
    } else if (text.slice(start).replace(OUTER_SPACE, '') !== '')
      throw new Failure(`${name} has text after the end of the JSON array, after element ${number}`);
    if (rest.length > ROW_LENGTH_MAX)
      throw new Failure(`${name}: element ${number + 1} ${tooLong('quote or bracket')}`);
  }
  if (isClosed) return;
  throw new Failure(`${name} ends before the end of the JSON array, at or after element ${number + 1}`);
}

/**
 * Finds the borders of the elements of an array. It tracks only strings and nesting (RFC 8259
 * sections 4, 5 and 7), without recursion. The parser later detects invalid elements.
 */
class ArrayScanner {
  #depth = 0;
  #inString = false;
  #isEscaped = false;

  /** The positions of the brackets and commas of the array itself in the next chunk of its text. */
  *borders(chunk: string): Generator<number> {
    for (let position = 0; position < chunk.length; position++) {
      const character = chunk[position];
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (character === '\\') this.#isEscaped = true;
        else if (character === '"') this.#inString = false;
      } else if (character === '"') this.#inString = true;
      else if (character === '[' || character === '{') {
        this.#depth++;
        if (this.#depth === 1) yield position;
      } else if (this.#depth > 1) {
        if (character === ']' || character === '}') this.#depth--;
      } else if (character === ',' || character === ']') yield position;
    }
  }
}
