const whole = new Intl.NumberFormat('en-GB');

/** Makes a text such as `2,000`. */
export function formatCount(count: number): string {
  return whole.format(count);
}

/** @returns the rate of a count in this many ms, as a whole number */
export function perSecond(count: number, ms: number): number {
  return ms > 0 ? Math.round((count * 1000) / ms) : 0;
}

/** Makes a text such as `1 plant` or `2,000 plants`. */
export function amount(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}
