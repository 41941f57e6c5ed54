import type { Spread } from '../test/harness/statistics.ts';

/** A row of the table of bars. */
export interface Row {
  what: string;
  /** The target; a row without a bar is only information. */
  bar?: { atLeast: number } | { atMost: number };
  /** The result of all rounds; undefined if not measured. */
  reached: Spread | undefined;
  unit?: string;
}

/** @returns whether a row has a bar and does not reach it */
function isMissed({ bar, reached }: Row): boolean {
  if (bar === undefined || reached === undefined) return false;
  return 'atLeast' in bar ? reached.median < bar.atLeast : reached.median > bar.atMost;
}

/** The rows as a Markdown table. */
export function rowTable(rows: readonly Row[]): string {
  const cells = rows.map(row => {
    const { what, bar, reached, unit = '' } = row;
    const limit = bar && ('atLeast' in bar ? `≥ ${bar.atLeast}` : `≤ ${bar.atMost}`);
    if (reached === undefined) return [what, limit ?? '', 'not measured', ''];
    const { median, min, max } = reached;
    const range = `${formatNumber(min)} to ${formatNumber(max)}`;
    const missed = isMissed(row) ? ' (missed)' : '';
    return [what, limit ?? '', `${formatNumber(median)} ${unit}`.trim() + missed, range];
  });
  return table(['what', 'bar', 'reached', 'spread'], cells);
}

export function table(columns: readonly string[], rows: readonly string[][]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Rounds to three significant digits, but not before the decimal point. */
export function formatNumber(value: number): string {
  const rounded = value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
  return rounded.toLocaleString('en');
}
