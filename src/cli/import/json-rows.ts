import { readJson, readToEnd } from '../../contract/json-reader.ts';
import { readNewPlantText } from '../../contract/plant.ts';
import { Failure } from '../failure.ts';
import { ArrayScanner } from './array-scanner.ts';
import { ROW_LENGTH_MAX } from './limits.ts';
import { HARMLESS, type PlantRow, type PlantRows, REASON_NAMES, tooLong } from './plant-row.ts';

/**
 * The white space around a value (RFC 8259 section 2). String.trim would cut more, which is a fault to report. The match
 * of a run begins at its first character only, or many runs would take a time that grows with their square.
 */
const OUTER_SPACE = /^[ \t\n\r]+|(?<![ \t\n\r])[ \t\n\r]+$/g;

/**
 * Reads the plants of a JSON Lines file, a value on every line; empty lines are skipped but counted.
 *
 * @param name how messages call the file
 * @throws {Failure} when a line is too long, with all rows before handed on then, or when lines are no whole values
 */
export async function* jsonLinesRows(name: string, texts: AsyncIterable<string>): PlantRows {
  let number = 0;
  /** The beginning of a line that has not arrived whole. */
  let rest = '';
  for await (const text of withLineEnd(texts)) {
    const lines = text.split('\n');
    lines[0] = rest + lines[0];
    rest = lines.pop()!;
    const rows: PlantRow[] = [];
    for (const line of lines) {
      number++;
      const value = line.replace(OUTER_SPACE, '');
      // One object over many lines, or many of them: each line would be rejected with a reason that does not help.
      if (number === 1 && value === '{') {
        throw new Failure(
          `${name} is neither JSON Lines nor a JSON array: a plant goes over several lines in it; put each on one line, ` +
            'or all into one array',
        );
      }
      if (value !== '') rows.push(jsonRow(number, value));
    }
    yield rows;
    if (rest.length > ROW_LENGTH_MAX) throw tooLong(`${name}: line ${number + 1}`, 'quote or bracket');
  }
}

/** The last line needs no end in a file. */
async function* withLineEnd(texts: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  yield* texts;
  yield '\n';
}

/**
 * Reads the plants of a file that is one JSON array. An element that is not JSON is found when it is parsed.
 *
 * @param name how messages call the file, whose first character but white space is `[`
 * @throws {Failure} when an element is too long, the array never ends or text follows it; all rows before have been
 *   handed on then
 */
export async function* jsonArrayRows(name: string, texts: AsyncIterable<string>): PlantRows {
  const scanner = new ArrayScanner();
  let number = 0;
  /** The beginning of an element that has not arrived whole. */
  let rest = '';
  let isClosed = false;
  for await (const text of texts) {
    const rows: PlantRow[] = [];
    let start = 0;
    for (let end = -1; !isClosed; ) {
      end = scanner.next(text, end + 1);
      if (end < 0) break;
      const mark = text[end];
      if (mark !== '[') {
        const value = (rest + text.slice(start, end)).replace(OUTER_SPACE, '');
        isClosed = mark === ']';
        number++;
        // An array without elements holds nothing before its end.
        if (!isClosed || number > 1 || value !== '') rows.push(jsonRow(number, value));
      }
      rest = '';
      start = end + 1;
    }
    yield rows;
    if (!isClosed) rest += text.slice(start);
    else if (text.slice(start).replace(OUTER_SPACE, '') !== '')
      throw new Failure(`${name} goes on after the JSON array, behind element ${number}; ${HARMLESS}`);
    if (rest.length > ROW_LENGTH_MAX) throw tooLong(`${name}: element ${number + 1}`, 'quote or bracket');
  }
  if (isClosed) return;
  throw new Failure(
    `${name} ends before the JSON array does, in element ${number + 1} or behind it; ${HARMLESS}`,
  );
}

/** @param number of the line, or of the element of the array */
function jsonRow(number: number, text: string): PlantRow {
  const reading = readNewPlantText(text);
  return {
    number,
    reading,
    rejectsHeader: () => '',
    rejectsLine: ({ error, message }) => {
      const isObject = text.startsWith('{') && reading.error !== 'notJson';
      const own = isObject ? ownMembers(text) : `"text":${JSON.stringify(text)}`;
      const comma = own.trim() === '' ? '' : ',';
      return `{${own}${comma}"row":${number},"error":${error},"message":${JSON.stringify(message)}}\n`;
    },
  };
}

/** The members of an object as they are written, on one line and without the reason that an earlier rejects file added. */
function ownMembers(text: string): string {
  const members: { name: string; valueText: string }[] = [];
  readToEnd(readJson(text, (name, valueText) => members.push({ name, valueText })));
  const own = members.filter(({ name }) => !REASON_NAMES.includes(name));
  const ownText =
    own.length === members.length
      ? text.slice(1, text.lastIndexOf('}'))
      : own.map(({ name, valueText }) => `${JSON.stringify(name)}:${valueText}`).join(',');
  // JSON allows a line break only between its parts, never inside a string, so a blank may take its place.
  return ownText.replace(/[\r\n]+/g, ' ');
}
