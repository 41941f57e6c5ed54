import { Failure } from '../../../src/cli/shared/failure.ts';
import { readJson, readToEnd } from '../../../src/core/contract/json-reader.ts';
import { type PlantRow, type PlantRows, ROW_LENGTH_MAX, tooLong } from '../rows/plant-row.ts';
import type { TextOpening } from '../text/text-opening.ts';
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
    isSeveralLines(text) ? !isStartOfJson(text) : faultIndex(text) === undefined && !beginsWithList(text),
  );
  return isSeveralLines(opening.text) ? isStartOfJson(opening.text) : beginsWithList(opening.text);
}

/** Whether a text is one JSON value, or can become it. */
function isStartOfJson(text: string): boolean {
  const fault = faultIndex(text);
  if (fault === undefined) return true;
  // A token after a value is another value.
  return CUT_TOKEN.test(text.slice(fault)) && faultIndex(text.slice(0, fault)) !== undefined;
}

/** @returns the index of the first fault; undefined if the text is JSON */
function faultIndex(text: string): number | undefined {
  return readToEnd(readJson(text, () => {}));
}

/** Whether a text begins with an object that has a list, and is no plant. */
function hasList(text: string, plantMembers: ReadonlySet<string>): boolean {
  const scanner = new ListScanner(plantMembers);
  // Members after the list can show that the object is a plant.
  for (const _ of scanner.elements(text));
  return scanner.hasList;
}

/**
 * Reads the plants of a text that is one JSON array, or one object with one list of objects.
 *
 * @param firstLine number of the first line of the text
 * @param plantMembers of which a plant has at least one, and the object around a list has none
 * @param rowMakerFor is called with the list at its first element
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
  const scanner = new ListScanner(plantMembers, firstLine);
  let rowOf: RowMaker | undefined;
  for await (const chunk of texts) {
    const rows: PlantRow[] = [];
    for (const { number, line, text } of scanner.elements(chunk)) {
      rowOf ??= rowMakerFor(scanner.list!);
      rows.push(rowOf({ number, line, name: `line ${line} (element ${number})` }, text));
    }
    yield rows;
    if (scanner.fault !== undefined) break;
    const { incomplete } = scanner;
    if (incomplete !== undefined && incomplete.text.length > ROW_LENGTH_MAX)
      throw new Failure(`${name}: element ${incomplete.number} ${tooLong('quote or bracket')}`);
  }
  const fault = scanner.faultAtEnd();
  if (fault !== undefined) throw new Failure(`${name} ${fault}`);
}
