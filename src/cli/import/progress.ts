import type { Outcome } from '../../contract/plant.ts';
import { amount, formatCount, ProgressDisplay, perSecond, timeLeft } from '../progress-display.ts';

/** Counts the rows that are done with, and shows how far the import is. */
export class Progress extends ProgressDisplay {
  readonly #counts = { created: 0, unchanged: 0, revised: 0, rejected: 0 };
  readonly #bytesTotal: number | undefined;
  #bytesRead = 0;
  /** Of these, the ones whose rows are on their way; and so many were before the rows that are being sent. */
  #bytesSent = 0;
  #bytesSentBefore = 0;

  /** @param bytesTotal of all files as they are stored; undefined when nobody knows */
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
   * Of the rows that the bytes read last brought, so many are on their way. A file may be read in one piece and its rows
   * take minutes, where the service limits the rate.
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
      // What is sent says nothing of the time that answers take.
      parts.splice(3, 0, rows === 0 ? 'no answer yet' : timeLeft(elapsedMs, share));
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
