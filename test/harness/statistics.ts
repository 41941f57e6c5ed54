/** The middle of the values; of an even number of them, between the two in the middle. NaN when there are none. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/**
 * The value that a share of all values do not exceed, in a line between the two nearest of them.
 *
 * @param q from 0, the least value, to 1, the greatest
 * @returns NaN when there are no values
 */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  if (sorted.length === 0) return Number.NaN;
  const position = (sorted.length - 1) * q;
  const below = sorted[Math.floor(position)]!;
  const above = sorted[Math.ceil(position)]!;
  return below + (above - below) * (position - Math.floor(position));
}

/** What is said of a figure that was measured once in each round. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

/** @returns undefined when there are no values */
export function spread(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined;
  return { median: median(values), min: quantile(values, 0), max: quantile(values, 1) };
}
