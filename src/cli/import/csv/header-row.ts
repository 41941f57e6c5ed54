import { Failure } from '../../output/failure.ts';
import type { Texts } from '../text/line-ends.ts';
import { type ColumnChoice, knownColumnsOf } from './csv-header.ts';

/** Lines at the start of a file in which a header is looked for. */
export const HEADER_LINES = 20;
/** A line without text, or the line that tells Excel the delimiter. */
const NO_HEADER = /^(?:[\s,;|"]*$|"?sep=)/i;

/** Removes the lines before a line. @param line number of the first line that is returned, from 1 */
export async function* textsFromLine(name: string, texts: Texts, line: number): Texts {
  await using rest = texts;
  let missing = line - 1;
  /** Whether the text so far ends with a CR that may be half of a CRLF. */
  let endsWithCr = false;
  for await (const text of rest) {
    let start: number = endsWithCr && text.startsWith('\n') ? 1 : 0;
    endsWithCr = false;
    for (; missing > 0 && start < text.length; missing--) {
      const end = /\r\n?|\n/g;
      end.lastIndex = start;
      if (end.exec(text) === null) break;
      start = end.lastIndex;
      endsWithCr = start === text.length && text.endsWith('\r');
    }
    if (missing === 0 && start < text.length) yield text.slice(start);
  }
  if (missing > 0)
    throw new Failure(`${name} has fewer than ${line} lines; give the line of its header with --header-row`);
}

/** The lines at the start of a file, each with the columns of a plant that it names. */
function headerLines(start: string, choice: ColumnChoice): { isText: boolean; columns: string[] }[] {
  return start
    .split(/\r\n?|\n/)
    .slice(0, HEADER_LINES)
    .map(line =>
      NO_HEADER.test(line)
        ? { isText: false, columns: [] }
        : { isText: true, columns: knownColumnsOf(line, choice) },
    );
}

/** Whether the first line with text names a column of a plant. */
export function beginsWithHeader(start: string, choice: ColumnChoice): boolean {
  const first = headerLines(start, choice).find(({ isText }) => isText);
  return first !== undefined && first.columns.length > 0;
}

/**
 * Finds a header below title rows. Call it if the text does not begin with a header.
 *
 * @param start the first lines of a file
 * @param firstLine number of the first of them
 * @returns what to do, if one of these lines names a column of a plant
 */
export function headerHint(start: string, firstLine: number, choice: ColumnChoice): string | undefined {
  const lines = headerLines(start, choice);
  const most = Math.max(...lines.map(({ columns }) => columns.length));
  if (most === 0) return undefined;
  const best = lines.findIndex(({ columns }) => columns.length === most);
  const line = firstLine + best;
  return `line ${line} names ${lines[best]!.columns.join(' and ')}, so use --header-row ${line} if it is the header`;
}
