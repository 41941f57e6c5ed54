import type { Outcome } from '../../contract/plant.ts';

const whole = new Intl.NumberFormat('en-GB');

/** Counts the rows that are done with. */
export class Tally {
  readonly #counts = { created: 0, unchanged: 0, revised: 0, rejected: 0 };

  count(what: Outcome | 'rejected'): void {
    this.#counts[what]++;
  }

  get rejected(): number {
    return this.#counts.rejected;
  }

  get rows(): number {
    const { created, unchanged, revised, rejected } = this.#counts;
    return created + unchanged + revised + rejected;
  }

  /** One line for a person, such as `2 rows: 1 created, 0 unchanged, 0 revised, 1 rejected in 0.3 s (7/s)`. */
  summary(ms: number): string {
    const counts = Object.entries(this.#counts).map(([name, count]) => `${formatCount(count)} ${name}`);
    const rate = formatCount(perSecond(this.rows, ms));
    const noun = this.rows === 1 ? 'row' : 'rows';
    return `${formatCount(this.rows)} ${noun}: ${counts.join(', ')} in ${(ms / 1000).toFixed(1)} s (${rate}/s)`;
  }
}

/** Writes a count with its thousands apart. */
export function formatCount(count: number): string {
  return whole.format(count);
}

export function perSecond(count: number, ms: number): number {
  return ms > 0 ? Math.round((count * 1000) / ms) : 0;
}
