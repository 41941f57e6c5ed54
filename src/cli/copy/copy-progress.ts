import { formatCount, perSecond } from '../import/tally.ts';
import { ProgressDisplay, timeLeft } from '../progress-display.ts';

/** Shows how far one pass over the source is. */
export class CopyProgress {
  readonly #title: string;
  readonly #total: number | undefined;
  readonly #startMs = performance.now();
  readonly #display: ProgressDisplay;
  #read = 0;

  /**
   * @param title what the pass does, such as `copying`
   * @param total revisions of the source; undefined when nobody knows
   */
  constructor(title: string, total: number | undefined) {
    this.#title = title;
    this.#total = total;
    this.#display = new ProgressDisplay(total, () => ({ done: this.#read, text: this.#state() }));
  }

  read(revisions: number): void {
    this.#read += revisions;
  }

  stop(): void {
    this.#display.stop();
  }

  /** Such as `copying: 34%, 51,717 revisions, 74,630/s, 4 s left`. */
  #state(): string {
    const elapsedMs = performance.now() - this.#startMs;
    const parts = [
      `${formatCount(this.#read)} revisions`,
      `${formatCount(perSecond(this.#read, elapsedMs))}/s`,
    ];
    if (this.#total !== undefined && this.#read > 0) {
      // The source may take more meanwhile.
      const share = Math.min(1, this.#read / this.#total);
      parts.unshift(`${Math.floor(share * 100)}%`);
      parts.push(timeLeft(elapsedMs, share));
    }
    return `${this.#title}: ${parts.join(', ')}`;
  }
}
