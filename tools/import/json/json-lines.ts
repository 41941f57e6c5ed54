import { Failure } from '../../../src/cli/shared/failure.ts';
import { type PlantRow, type PlantRows, ROW_LENGTH_MAX, tooLong } from '../rows/plant-row.ts';
import type { RowMaker } from './json-row.ts';

/**
 * The white space around a value (RFC 8259 section 2). `String.trim` would remove more characters.
 * Without the lookbehind, the time would be quadratic in the white space.
 */
export const OUTER_SPACE = /^[ \t\n\r]+|(?<![ \t\n\r])[ \t\n\r]+$/g;

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
  rowOf: RowMaker,
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
