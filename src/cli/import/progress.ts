import type { Outcome } from '../../contract/plant.ts';
import { amount, formatCount, ProgressDisplay, perSecond, timeLeft } from '../output/progress-display.ts';

/** Counts the settled rows and shows the progress of the import. */
export class Progress extends ProgressDisplay {
  readonly #counts = { created: 0, unchanged: 0, revised: 0, rejected: 0 };
  readonly #bytesTotal: number | undefined;
  #bytesRead = 0;
  /** Bytes of the rows that were sent. */
  #bytesSent = 0;
  /** Bytes of the complete batches that were sent. */
  #bytesSentBefore = 0;

  /** @param bytesTotal size of all files on disk; undefined if unknown */
  constructor(bytesTotal: number | undefined) {
    super();
    this.#bytesTotal = bytesTotal;
  }

  protected get share(): number | undefined {
    return this.#bytesTotal && Math.min(1, this.#bytesSent / this.#bytesTotal);
  }

  read(bytes: number): void {
    this.#bytesRead += bytes;
  }

  /**
   * Reports the sent rows of the current batch. A file can be read at once, while its rows take
   * minutes because the service limits the rate.
   */
  sent(rows: number, rowsRead: number): void {
    this.#bytesSent = this.#bytesSentBefore + ((this.#bytesRead - this.#bytesSentBefore) * rows) / rowsRead;
    if (rows === rowsRead) this.#bytesSentBefore = this.#bytesRead;
  }

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

  /** Such as `34% sent, 51,717 plants, 24,630/s, 4 s left, 0 rejected`. */
  state(): string {
    const elapsedMs = performance.now() - this.startMs;
    const rows = this.rows;
    const parts = [
      `${formatCount(rows)} plants`,
      `${formatCount(perSecond(rows, elapsedMs))}/s`,
      `${formatCount(this.rejected)} rejected`,
    ];
    const { share } = this;
    if (share) {
      parts.unshift(`${Math.floor(share * 100)}% sent`);
      // Without a response there is no rate to estimate with.
      parts.splice(3, 0, rows === 0 ? 'no response yet' : timeLeft(elapsedMs, share));
    }
    return parts.join(', ');
  }

  /** Such as `2 rows: 1 created, 0 unchanged, 0 revised, 1 rejected in 0.3 s (7/s)`. */
  summary(): string {
    const elapsedMs = performance.now() - this.startMs;
    const counts = Object.entries(this.#counts).map(([name, count]) => `${formatCount(count)} ${name}`);
    const seconds = (elapsedMs / 1000).toFixed(1);
    return `${amount(this.rows, 'row')}: ${counts.join(', ')} in ${seconds} s (${formatCount(perSecond(this.rows, elapsedMs))}/s)`;
  }
}
