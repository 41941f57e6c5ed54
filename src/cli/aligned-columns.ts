const MARKS = /[\p{Mn}\p{Me}\p{Cf}]/gu;
const WIDE = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{Emoji_Presentation}、-〾！-｠]/gu;

/**
 * Aligns the cells of lines, which have tabs between them. The last one can have any length.
 *
 * @param widths of the lines before these; they grow with wider cells
 */
export function alignedColumns(lines: string, widths: number[] = []): string {
  const rows = lines.split('\n').map(line => line.split('\t'));
  for (const row of rows) {
    for (const [column, cell] of row.slice(0, -1).entries())
      widths[column] = Math.max(widths[column] ?? 0, widthOf(cell));
  }
  const pad = (cell: string, column: number): string => cell + ' '.repeat(widths[column]! - widthOf(cell));
  return rows.map(row => [...row.slice(0, -1).map(pad), row.at(-1)].join('  ')).join('\n');
}

/** The columns of a terminal that a text takes. */
function widthOf(text: string): number {
  if (!/[^ -~]/.test(text)) return text.length;
  return [...text.replace(MARKS, '')].length + (text.match(WIDE)?.length ?? 0);
}
