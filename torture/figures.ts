/** Median and greatest of what was measured, as an ordeal prints it. */
export function spread(figures: readonly number[], unit: string): string {
  if (figures.length === 0) return 'none';
  const sorted = figures.toSorted((a, b) => a - b);
  return `median ${sorted[sorted.length >> 1]!.toFixed(0)} ${unit}, most ${sorted.at(-1)!.toFixed(0)} ${unit}`;
}

export function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
