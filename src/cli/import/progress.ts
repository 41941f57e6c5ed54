import type { Outcome } from '../../core/contract/plant.ts';
import { amount, formatCount, perSecond } from '../output/number-text.ts';
import { CountedProgress, shareOf } from '../output/progress-display.ts';

/** The progress of an import. Its share is that of the bytes whose rows were sent. */
export class Progress extends CountedProgress {
  readonly #counts = { created: 0, unchanged: 0, revised: 0, rejected: 0 };
  #bytesRead = 0;
  #bytesSent = 0;

  /** @param bytesTotal size of all files on disk; undefined if unknown */
  constructor(bytesTotal: number | undefined) {
    super('importing', 'plants', bytesTotal);
  }

  protected override get share(): number | undefined {
    return shareOf(this.#bytesSent, this.total);
  }

  /** Counts bytes of a file that were read. */
  read(bytes: number): void {
    this.#bytesRead += bytes;
  }

  /**
   * Counts a row that was sent. The share is that of sent rows, since a file may be read at once
   * and its rows sent at a limited rate.
   *
   * @param rowsLeft number of rows that were read and not sent, with this one
   */
  sent(rowsLeft: number): void {
    this.#bytesSent += (this.#bytesRead - this.#bytesSent) / rowsLeft;
  }

  /** Counts a row that was stored or rejected. */
  count(what: Outcome | 'rejected'): void {
    this.#counts[what]++;
    this.done++;
  }

  get rejected(): number {
    return this.#counts.rejected;
  }

  /** Makes a text such as `34% sent, 51,717 plants, 24,630/s, 4 s left, 0 rejected`. */
  override state(): string {
    return `${this.counts('% sent')}, ${formatCount(this.rejected)} rejected`;
  }

  /** Makes a text such as `2 rows: 1 created, 0 unchanged, 1 revised, 0 rejected in 1 s (2/s)`. */
  summary(): string {
    const elapsedMs = performance.now() - this.startMs;
    const counts = Object.entries(this.#counts).map(([name, count]) => `${formatCount(count)} ${name}`);
    const seconds = (elapsedMs / 1000).toFixed(1);
    return `${amount(this.done, 'row')}: ${counts.join(', ')} in ${seconds} s (${formatCount(perSecond(this.done, elapsedMs))}/s)`;
  }
}
