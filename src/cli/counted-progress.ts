import { formatCount, ProgressDisplay, perSecond, timeLeft } from './progress-display.ts';

/** Shows how far a command is by what it counts. */
export class CountedProgress {
  title: string;
  done = 0;
  /** 0 until it is known. */
  total: number;
  readonly #unit: string;
  readonly #startMs = performance.now();
  readonly #display: ProgressDisplay;

  /**
   * @param title what the command does, such as `copying`
   * @param unit what is counted, such as `revisions`
   * @param total of them; undefined where nobody will know
   */
  constructor(title: string, unit: string, total: number | undefined) {
    this.title = title;
    this.total = total ?? 0;
    this.#unit = unit;
    const percents = total === undefined ? undefined : 100;
    this.#display = new ProgressDisplay(percents, () => ({ done: this.#percent, text: this.#state() }));
  }

  stop(): void {
    this.#display.stop();
  }

  get #share(): number {
    // A store may take more while it is read.
    return this.total === 0 ? 0 : Math.min(1, this.done / this.total);
  }

  get #percent(): number {
    return Math.floor(this.#share * 100);
  }

  /** Such as `copying: 34%, 51,717 revisions, 74,630/s, 4 s left`. */
  #state(): string {
    if (this.done === 0) return this.title;
    const elapsedMs = performance.now() - this.#startMs;
    const parts = [
      `${formatCount(this.done)} ${this.#unit}`,
      `${formatCount(perSecond(this.done, elapsedMs))}/s`,
    ];
    if (this.total > 0) parts.unshift(`${this.#percent}%`);
    if (this.total > 0) parts.push(timeLeft(elapsedMs, this.#share));
    return `${this.title}: ${parts.join(', ')}`;
  }
}

/** Such as `1 plant` or `2,000 plants`. */
export function amount(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}
