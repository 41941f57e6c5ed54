/** Counts the line ends in a text, as an editor does. The text must not end within a CRLF. */
export function countLineEnds(text: string): number {
  return text.match(/\r\n?|\n/g)?.length ?? 0;
}
