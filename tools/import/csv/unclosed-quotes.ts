import { ROW_LENGTH_MAX } from '../rows/plant-row.ts';

/** A part of a tab-separated text. */
export type TextPart =
  | { kind: 'text'; text: string; areQuotesText: boolean }
  /** The next line would fill the memory. It is the last part. */
  | { kind: 'long line' };

/**
 * Divides a text before the first line with an unclosed quote. From this line on, quotes are text.
 *
 * Many tab-separated files contain quotes as text, such as the line `2<TAB>"north`. As the start of
 * a quoted field, this quote would take the next rows into one. Before the line, each record is one
 * line.
 */
export async function* partsByQuotes(
  texts: AsyncIterable<string>,
): AsyncGenerator<TextPart, void, undefined> {
  let areQuotesText = false;
  /** The start of an incomplete line. */
  let rest = '';
  let restBytes = 0;
  for await (const text of texts) {
    if (areQuotesText) {
      yield { kind: 'text', text, areQuotesText };
      continue;
    }
    const lineEnd = Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')) + 1;
    const lines = lineEnd > 0 ? rest + text.slice(0, lineEnd) : '';
    rest = lineEnd > 0 ? text.slice(lineEnd) : rest + text;
    restBytes = (lineEnd > 0 ? 0 : restBytes) + Buffer.byteLength(lineEnd > 0 ? rest : text);
    const unclosed = startOfUnclosedLine(lines);
    areQuotesText = unclosed < lines.length;
    yield { kind: 'text', text: lines.slice(0, unclosed), areQuotesText: false };
    if (!areQuotesText && restBytes > ROW_LENGTH_MAX) return yield { kind: 'long line' };
    if (!areQuotesText) continue;
    yield { kind: 'text', text: lines.slice(unclosed) + rest, areQuotesText };
    rest = '';
  }
  if (rest !== '') yield { kind: 'text', text: rest, areQuotesText: startOfUnclosedLine(rest) < rest.length };
}

/** @returns the length of the text if all its lines close their quotes */
function startOfUnclosedLine(lines: string): number {
  if (!lines.includes('"')) return lines.length;
  for (const { 0: line, index } of lines.matchAll(/[^\r\n]+/g))
    if (openQuoteIn(line, '\t') !== undefined) return index;
  return lines.length;
}

/** @returns the index of the quote that begins a field and is never closed; undefined if none is */
export function openQuoteIn(text: string, delimiter: string): number | undefined {
  for (let start = 0; ; ) {
    if (text[start] === '"') {
      let quote = text.indexOf('"', start + 1);
      // A doubled quote is text.
      while (quote >= 0 && text[quote + 1] === '"') quote = text.indexOf('"', quote + 2);
      if (quote < 0) return start;
      start = quote;
    }
    const end = text.indexOf(delimiter, start);
    if (end < 0) return undefined;
    start = end + delimiter.length;
  }
}
