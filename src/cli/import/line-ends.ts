/** How many lines end in a text, as an editor counts them. Its borders must not split a CRLF. */
export function countLineEnds(text: string): number {
  return text.match(/\r\n?|\n/g)?.length ?? 0;
}
