import { ProgressDisplay, timeLeft } from '../progress-display.ts';
import { formatCount, perSecond, type Tally } from './tally.ts';

/** Shows how far the import is. */
export class Progress {
  readonly #tally: Tally;
  readonly #bytesTotal: number | undefined;
  readonly #startMs = performance.now();
  readonly #display: ProgressDisplay;
  #bytesRead = 0;

  /** @param bytesTotal of all files as they are stored; undefined when nobody knows */
  constructor(tally: Tally, bytesTotal: number | undefined) {
    this.#tally = tally;
    this.#bytesTotal = bytesTotal;
    this.#display = new ProgressDisplay(bytesTotal, () => ({ done: this.#bytesRead, text: this.#state() }));
  }

  /** More bytes of the files, as they are stored, were read. */
  read(bytes: number): void {
    this.#bytesRead += bytes;
  }

  get elapsedMs(): number {
    return performance.now() - this.#startMs;
  }

  /** Says a line between two states of the bar. */
  say(line: string): void {
    this.#display.say(line);
  }

  stop(): void {
    this.#display.stop();
  }

  /** Such as `34% read, 51,717 plants, 24,630/s, 4 s left, 0 rejected`. */
  #state(): string {
    const elapsedMs = this.elapsedMs;
    const rows = this.#tally.rows;
    const parts = [
      `${formatCount(rows)} plants`,
      `${formatCount(perSecond(rows, elapsedMs))}/s`,
      `${formatCount(this.#tally.rejected)} rejected`,
    ];
    if (this.#bytesTotal !== undefined && this.#bytesRead > 0) {
      const share = Math.min(1, this.#bytesRead / this.#bytesTotal);
      parts.unshift(`${Math.floor(share * 100)}% read`);
      parts.splice(3, 0, timeLeft(elapsedMs, share));
    }
    return parts.join(', ');
  }
}
