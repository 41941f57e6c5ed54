/** @returns NaN if there are no values */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value between the two nearest ones, or NaN without any. @param q from 0 to 1 */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  if (sorted.length === 0) return Number.NaN;
  const position = (sorted.length - 1) * q;
  const below = sorted[Math.floor(position)]!;
  const above = sorted[Math.ceil(position)]!;
  return below + (above - below) * (position - Math.floor(position));
}

/** The results of a metric that was measured once in each round. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

/** @returns undefined if there are no values */
export function spread(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined;
  return { median: median(values), min: quantile(values, 0), max: quantile(values, 1) };
}
