/**
 * Aligns the cells of lines, which are separated by tabs.
 *
 * @param widths the widths of the columns so far. They grow, so that later lines are aligned, too.
 */
export function alignedColumns(lines: string, widths: number[] = []): string {
  const rows = lines.split('\n').map(line => line.split('\t'));
  for (const row of rows) {
    for (const [column, { length }] of row.slice(0, -1).entries())
      widths[column] = Math.max(widths[column] ?? 0, length);
  }
  const pad = (cell: string, column: number): string => cell.padEnd(widths[column]!);
  return rows.map(row => [...row.slice(0, -1).map(pad), row.at(-1)].join('  ')).join('\n');
}
