import { type Spread, spread } from '../test/harness/statistics.ts';

/** A line of the table of bars. */
export interface Row {
  what: string;
  /** What it is to reach; a row without a bar is to be read only. */
  bar?: { atLeast: number } | { atMost: number };
  /** Over the rounds; undefined when it was not measured. */
  reached: Spread | undefined;
  unit?: string;
}

/** @returns whether a row reaches its bar; undefined when it has none, or was not measured */
export function isReached({ bar, reached }: Row): boolean | undefined {
  if (bar === undefined || reached === undefined) return undefined;
  return 'atLeast' in bar ? reached.median >= bar.atLeast : reached.median <= bar.atMost;
}

/** The rows as a Markdown table. */
export function rowTable(rows: readonly Row[]): string {
  const cells = rows.map(row => {
    const { what, bar, reached, unit = '' } = row;
    const limit = bar && ('atLeast' in bar ? `≥ ${bar.atLeast}` : `≤ ${bar.atMost}`);
    const verdict = { true: 'yes', false: 'no', undefined: '' }[String(isReached(row))]!;
    if (reached === undefined) return [what, limit ?? '', 'not measured', '', ''];
    const { median, min, max } = reached;
    const range = `${shownFigure(min)} to ${shownFigure(max)}`;
    return [what, limit ?? '', `${shownFigure(median)} ${unit}`.trim(), range, verdict];
  });
  return table(['what', 'bar', 'reached', 'spread', 'holds'], cells);
}

export function table(columns: readonly string[], rows: readonly string[][]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
}

/** With three digits that count, and no fewer than those before the point. */
export function shownFigure(value: number): string {
  const rounded = value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
  return rounded.toLocaleString('en');
}

/** The median, with the least and the greatest behind it. */
export function shownSpread(values: readonly number[]): string {
  const found = spread(values);
  if (found === undefined) return '-';
  if (values.length === 1) return shownFigure(found.median);
  return `${shownFigure(found.median)} (${shownFigure(found.min)} to ${shownFigure(found.max)})`;
}
