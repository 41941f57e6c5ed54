const whole = new Intl.NumberFormat('en-GB');

/** Writes a count with its thousands apart. */
export function formatCount(count: number): string {
  return whole.format(count);
}

export function perSecond(count: number, ms: number): number {
  return ms > 0 ? Math.round((count * 1000) / ms) : 0;
}
