import type { ErrorBody } from '../../contract/errors.ts';
import { jsonMembers } from '../../contract/json-members.ts';
import { type NewPlantReading, readNewPlantText } from '../../contract/plant.ts';
import { Failure } from '../failure.ts';
import {
  JsonArraySplitter,
  JsonLinesSplitter,
  type JsonSplitter,
  type JsonValueText,
} from './json-values.ts';
import type { PlantRow, PlantRows } from './plant-row.ts';

/** The members that a rejects file adds; those of an earlier one are replaced. */
const REASON_MEMBERS = ['row', 'error', 'message'];

/**
 * Reads the plants of a JSON Lines file, a value on every line.
 *
 * @param name how messages call the file
 * @throws {Failure} when a line is too long, with all rows before handed on then, or when lines are no whole values
 */
export async function* jsonLinesRows(name: string, texts: AsyncIterable<string>): PlantRows {
  for await (const rows of jsonRows(new JsonLinesSplitter(name), texts)) {
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
 * @param name how messages call the file
 * @throws {Failure} when an element is too long, the array never ends or text follows it; all rows before have been
 *   handed on then
 */
export function jsonArrayRows(name: string, texts: AsyncIterable<string>): PlantRows {
  return jsonRows(new JsonArraySplitter(name), texts);
}

async function* jsonRows(
  splitter: JsonSplitter,
  texts: AsyncIterable<string>,
): AsyncGenerator<JsonRow[], void, undefined> {
  for await (const text of texts) yield* batch(splitter.feed(text));
  yield* batch(splitter.end());
}

/** All rows of one piece at once; if one is broken, first those before it. */
function* batch(values: Iterable<JsonValueText>): Generator<JsonRow[], void, undefined> {
  const rows: JsonRow[] = [];
  try {
    for (const value of values) rows.push(new JsonRow(value));
  } catch (error) {
    yield rows;
    throw error;
  }
  yield rows;
}

class JsonRow implements PlantRow {
  readonly number: number;
  readonly reading: NewPlantReading;
  readonly text: string;

  constructor({ number, text }: JsonValueText) {
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
