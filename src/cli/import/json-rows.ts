import { readJson, readToEnd, stringOf } from '../../core/contract/json-reader.ts';
import { type NewPlant, type NewPlantReading, readNewPlantText } from '../../core/contract/plant.ts';
import { readTypedId } from '../id-text.ts';
import { Failure } from '../output/failure.ts';
import { quoted } from '../output/visible-text.ts';
import { countLineEnds } from './line-ends.ts';
import type { MadeId, MadeIds } from './made-ids.ts';
import {
  LINE_BREAK,
  type LineBreak,
  type PlantRow,
  type PlantRows,
  REASON_NAMES,
  ROW_LENGTH_MAX,
  tooLong,
} from './plant-row.ts';

/**
 * The white space around a value (RFC 8259 section 2). `String.trim` would remove more characters.
 * Without the lookbehind, the time would be quadratic in the white space.
 */
const OUTER_SPACE = /^[ \t\n\r]+|(?<![ \t\n\r])[ \t\n\r]+$/g;

/** White space at the start, except a last CR that may be half of a CRLF. */
const OPENING_SPACE = /^(?:[ \t\n]|\r(?!$))*/;

const SEVERAL_LINES =
  'is neither JSON Lines nor a JSON array: a plant spans several lines; write each plant on one line, ' +
  'or all plants in one array';

/**
 * Reads the plants of a JSON Lines file. Empty lines are skipped but counted.
 *
 * @param line number of the first line of the text
 * @param ids makes the ids; undefined if the file has them
 */
export async function* jsonLinesRows(
  name: string,
  texts: AsyncIterable<string>,
  line = 1,
  ids?: MadeIds,
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
      if (value !== '') rows.push(jsonRow(number, `line ${number}`, value, ids));
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
 * @param ids makes the ids; undefined if the file has them
 */
export async function* jsonArrayRows(
  name: string,
  texts: AsyncIterable<string>,
  line = 1,
  ids?: MadeIds,
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
        const place = `line ${lineOfRest + countLineEnds(/^\s*/.exec(element)![0])} (element ${number})`;
        // An empty array has no text before its end.
        if (!isClosed || number > 1 || value !== '') rows.push(jsonRow(number, place, value, ids));
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

/**
 * @param number line number, or number of the array element
 * @param place where a person finds the value
 * @param text a value. In a rejects file, the member `text` of an object contains a value that
 *   could not get the reason as members: no object, or an object of this form
 */
function jsonRow(number: number, place: string, text: string, ids: MadeIds | undefined): PlantRow {
  const reading = readNewPlantText(text);
  const isJson = reading.kind === 'plant' || reading.error !== 'notJson';
  const isObject = isJson && text.startsWith('{');
  const isRead = reading.kind === 'plant' && ids === undefined;
  const members = isObject && !isRead ? ownMembers(text) : undefined;
  const hasText = members?.[0]?.startsWith('"text":"');
  const object = hasText ? JSON.parse(text) : {};
  const isOfRejectsFile = Object.keys(object).join() === ['text', ...REASON_NAMES].join();
  if (isOfRejectsFile && typeof object.text === 'string') return jsonRow(number, place, object.text, ids);
  const madeId = ids && madeIdOf(ids, members);
  const ownReading = members === undefined ? reading : readMembers(members, madeId);
  return {
    number,
    place: () => place,
    lineBreak: ownReading.kind === 'plant' ? lineBreakOf(ownReading.plant) : undefined,
    reading: ownReading,
    madeId,
    rejectsFormat: () => ({ kind: 'jsonl' }),
    rejectsLine: ({ error, message }) => {
      const isNumbered = ids?.rule.kind === 'numbers' && madeId?.kind === 'id';
      const hasMembers = isObject && !hasText;
      const own = hasMembers ? ownMembers(text) : [`"text":${JSON.stringify(text)}`];
      if (isNumbered && hasMembers) own.splice(0, own.length, ...withNumber(own, madeId.id));
      const note = isNumbered && !hasMembers ? `; its id is ${madeId.id}` : '';
      const reason = `"row":${number},"error":${error},"message":${JSON.stringify(message + note)}`;
      return `{${[...own, reason].join()}}\n`;
    },
  };
}

/** The members of a numbered row. Its number is its id, and an id that is ignored has another name. */
function withNumber(members: string[], id: bigint): string[] {
  return [`"id":${id}`, ...members.map(each => each.replace(/^"id":/, '"ignored id":'))];
}

/** @param members in the form of {@link ownMembers}; undefined if the value is no object */
function madeIdOf(ids: MadeIds, members: string[] | undefined): MadeId {
  if (!ids.rule.ignoresIds && members?.some(each => each.startsWith('"id":'))) return { kind: 'own id' };
  const textOf = (column: string): string | undefined => {
    const name = `${JSON.stringify(column)}:`;
    const value = members!.find(each => each.startsWith(name))?.slice(name.length);
    if (value?.startsWith('"')) return stringOf(value);
    // A number has the text that it has in the file, as it would have in CSV.
    return value !== undefined && /^[-0-9]/.test(value) ? value : undefined;
  };
  return ids.make(members && ids.columns.map(textOf));
}

function lineBreakOf(plant: NewPlant): LineBreak | undefined {
  const column = (['name', 'tag'] as const).find(member => LINE_BREAK.test(plant[member] ?? ''));
  return column && { column, text: plant[column]! };
}

/** The start of a member `id` that is a string, in the form of {@link ownMembers}. */
const ID_TEXT = /^"id":(?=")/;

/** Reads a plant. The message begins with the fault of an id that is a string, or cannot be made. */
function readMembers(members: string[], madeId: MadeId | undefined): NewPlantReading {
  const withId = (id: bigint): string[] => [
    `"id":${id}`,
    ...members.filter(each => !each.startsWith('"id":')),
  ];
  if (madeId?.kind === 'id') return readNewPlantText(`{${withId(madeId.id)}}`);
  if (madeId?.kind === 'fault') return withIdFault(madeId.fault, withId(0n));
  const idText = members.find(member => ID_TEXT.test(member))?.replace(ID_TEXT, '');
  const id = idText === undefined ? undefined : stringOf(idText);
  const reading = id === undefined ? undefined : readTypedId(id);
  // A valid id is a number here, since `ownMembers` has replaced it.
  if (id === undefined || reading?.kind !== 'fault') return readNewPlantText(`{${members}}`);
  return withIdFault(
    `id ${quoted(id)} ${reading.fault}`,
    members.map(each => (ID_TEXT.test(each) ? '"id":0' : each)),
  );
}

/** Lists the fault of the id, then those of the other members. @param members with a valid id */
function withIdFault(fault: string, members: string[]): NewPlantReading {
  const reading = readNewPlantText(`{${members}}`);
  const message = reading.kind === 'plant' ? fault : `${fault}; ${reading.message}`;
  return { kind: 'invalid', error: 'notNewPlant', message };
}

/**
 * The exact text of an object's members, each on one line, without an earlier reason. Many files
 * have a null tag, which means no tag, or an id as a string. Both are accepted.
 */
function ownMembers(text: string): string[] {
  const own: string[] = [];
  const onMember = (name: string, valueText: string): void => {
    if (REASON_NAMES.includes(name) || (name === 'tag' && valueText === 'null')) return;
    const isIdText = name === 'id' && valueText.startsWith('"');
    const reading = isIdText ? readTypedId(stringOf(valueText)) : undefined;
    const value = reading?.kind === 'id' ? String(reading.id) : valueText;
    // JSON strings contain no line breaks, so each line break can become a space.
    own.push(`${JSON.stringify(name)}:${value.replace(/[\r\n]+/g, ' ')}`);
  };
  readToEnd(readJson(text, onMember));
  return own;
}
