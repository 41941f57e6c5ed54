import { readJson, readToEnd } from '../../../core/contract/json-reader.ts';
import { Failure } from '../../output/failure.ts';
import { type PlantRow, type PlantRows, ROW_LENGTH_MAX, tooLong } from '../rows/plant-row.ts';
import { LineCounter } from '../text/line-ends.ts';
import type { TextOpening } from '../text/text-opening.ts';
import { OUTER_SPACE } from './json-lines.ts';
import type { RowMaker } from './json-row.ts';
import { ListScanner, type PlantList } from './list-scanner.ts';

const LINE_END = /[\r\n]/;
/** The rest of a text from a fault on, if only a token at its end is incomplete, such as `\u00e`. */
const CUT_TOKEN = /^[^\s,:[\]{}]*$/;

/**
 * Whether a file that begins with `{` is one object with a list, and not JSON Lines. In JSON Lines,
 * the second line makes the text no JSON, unless the first line has a fault.
 *
 * @param plantMembers of which a plant has at least one, and the object around a list has none
 */
export async function isOneObject(opening: TextOpening, plantMembers: ReadonlySet<string>): Promise<boolean> {
  const beginsWithList = (text: string): boolean => hasList(text, plantMembers);
  const isSeveralLines = (text: string): boolean => LINE_END.test(text.trim());
  await opening.extend(text =>
    isSeveralLines(text) ? !isStartOfJson(text) : faultIn(text) === undefined && !beginsWithList(text),
  );
  return isSeveralLines(opening.text) ? isStartOfJson(opening.text) : beginsWithList(opening.text);
}

/** Whether a text is one JSON value, or can become it. */
function isStartOfJson(text: string): boolean {
  const rest = faultIn(text);
  return rest === undefined || CUT_TOKEN.test(rest);
}

/** @returns the text from its first fault on; undefined if it is JSON */
function faultIn(text: string): string | undefined {
  const index = readToEnd(readJson(text, () => {}));
  return index === undefined ? undefined : text.slice(index);
}

/** Whether a text begins with an object that has a list, and is no plant. */
function hasList(text: string, plantMembers: ReadonlySet<string>): boolean {
  const scanner = new ListScanner(plantMembers);
  // Members after the list can show that the object is a plant.
  for (const _ of scanner.marks(text));
  return scanner.hasList;
}

/**
 * Reads the plants of a text that is one JSON array, or one object with one list of objects.
 *
 * @param firstLine number of the first line of the text
 * @param plantMembers of which a plant has at least one, and the object around a list has none
 * @param rowMakerFor is called when the list begins
 * @throws {Failure} after the rows before a fault. Only at its end is it known that an object has
 *   one list, and is no plant
 */
export async function* jsonListRows(
  name: string,
  texts: AsyncIterable<string>,
  firstLine: number,
  plantMembers: ReadonlySet<string>,
  rowMakerFor: (list: PlantList) => RowMaker,
): PlantRows {
  const scanner = new ListScanner(plantMembers);
  const lines = new LineCounter(firstLine);
  let rowOf: RowMaker | undefined;
  /** The text of the element so far. White space before it may have any length, so it is not stored. */
  let element = '';
  let line = firstLine;
  for await (const text of texts) {
    const rows: PlantRow[] = [];
    let start = 0;
    const readTo = (end: number): string => {
      const part = text.slice(start, end);
      lines.add(part);
      start = end;
      return part;
    };
    for (const { kind, position } of scanner.marks(text)) {
      const part = readTo(position);
      if (kind === 'list') rowOf = rowMakerFor(scanner.list!);
      else if (kind === 'element') {
        line = lines.line;
        element = '';
      } else {
        const number = scanner.elements;
        const place = { number, line, name: `line ${line} (element ${number})` };
        rows.push(rowOf!(place, (element + part).replace(OUTER_SPACE, '')));
      }
    }
    const rest = readTo(text.length);
    if (scanner.isInElement) element += rest;
    yield rows;
    if (scanner.fault !== undefined) break;
    if (scanner.isInElement && element.length > ROW_LENGTH_MAX)
      throw new Failure(`${name}: element ${scanner.elements + 1} ${tooLong('quote or bracket')}`);
  }
  const fault = scanner.faultAtEnd();
  if (fault !== undefined) throw new Failure(`${name} ${fault}`);
}
