import { formatCount } from '../import/tally.ts';
import { ProgressDisplay, timeLeft } from '../progress-display.ts';
import type { BackupNews } from './backup-process.ts';

/** Shows how far a backup is. */
export class BackupProgress {
  readonly #startMs = performance.now();
  readonly #display = new ProgressDisplay(100, () => ({ done: this.#percent, text: this.#state() }));
  #pages = 0;
  #totalPages = 0;
  #isChecking = false;

  hear({ copied, isChecking }: BackupNews): void {
    if (copied !== undefined) ({ pages: this.#pages, totalPages: this.#totalPages } = copied);
    this.#isChecking ||= isChecking === true;
  }

  stop(): void {
    this.#display.stop();
  }

  get #percent(): number {
    return Math.floor((this.#pages / Math.max(1, this.#totalPages)) * 100);
  }

  /** Such as `copying: 34% of 61,035 pages, 4 s left`, and then `checking the copy`. */
  #state(): string {
    if (this.#isChecking) return 'checking the copy';
    if (this.#pages === 0) return 'copying';
    const left = timeLeft(performance.now() - this.#startMs, this.#pages / this.#totalPages);
    return `copying: ${this.#percent}% of ${formatCount(this.#totalPages)} pages, ${left}`;
  }
}
