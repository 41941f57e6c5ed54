import { Failure } from '../../../src/cli/shared/failure.ts';
import type { RowOptions } from '../rows/plant-row.ts';
import type { Texts } from '../text/line-ends.ts';
import { knownColumnsOf } from './csv-header.ts';

/** The header is among so many lines at the start of a file. */
const HEADER_LINES = 20;
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

/**
 * Finds a header below title rows.
 *
 * @param start the start of a file
 * @param firstLine number of its first line
 * @returns what to do, if the first line with text names no column of a plant, and another one does
 */
export function headerHint(start: string, firstLine: number, options: RowOptions): string | undefined {
  const lines = start.split(/\r\n?|\n/, HEADER_LINES);
  const columns = lines.map(line => (NO_HEADER.test(line) ? [] : knownColumnsOf(line, options)));
  const first = lines.findIndex(line => !NO_HEADER.test(line));
  const most = Math.max(...columns.map(({ length }) => length));
  if (most === 0 || columns[first]!.length > 0) return undefined;
  const best = columns.findIndex(({ length }) => length === most);
  const line = firstLine + best;
  return `line ${line} names ${columns[best]!.join(' and ')}, so use --header-row ${line} if it is the header`;
}
