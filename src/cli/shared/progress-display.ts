import { formatCount, perSecond } from '../../formats/number-text.ts';
import { visible } from '../../formats/visible-text.ts';

const LINE_INTERVAL_MS = 10_000;
const BAR_INTERVAL_MS = 100;
const BAR_LENGTH = 24;
const COLUMNS = 80;

/**
 * Shows the progress of a command on stderr: a bar on a terminal, otherwise a line every ten
 * seconds. Its disposal ends the display. Until then, other lines for stderr must go through
 * {@link say}.
 */
export class CountedProgress {
  title: string;
  done = 0;
  /** The expected value of `done`; undefined if it is not known. */
  total: number | undefined;
  unit: string;
  protected readonly startMs = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor(title: string, unit: string, total: number | undefined) {
    this.title = title;
    this.total = total;
    this.unit = unit;
    const { isTTY } = process.stderr;
    const show = () => (isTTY ? drawBar(this.share, visible(this.state())) : this.say(this.state()));
    this.#timer = setInterval(show, isTTY ? BAR_INTERVAL_MS : LINE_INTERVAL_MS).unref();
  }

  readonly add = (count: number): void => {
    this.done += count;
  };

  /** Completed share, from 0 to 1. If it is undefined, only the text of {@link state} is shown. */
  protected get share(): number | undefined {
    return shareOf(this.done, this.total);
  }

  /** Makes a text such as `copying: 34%, 51,717 revisions, 74,630/s, 4 s left`. */
  state(): string {
    return this.done === 0 ? this.title : `${this.title}: ${this.counts('%')}`;
  }

  protected counts(percent: string): string {
    const rate = formatCount(perSecond(this.done, performance.now() - this.startMs));
    const counts = `${formatCount(this.done)} ${this.unit}, ${rate}/s`;
    const [share, left] = this.#shareAndTime(percent);
    return [share, counts, left].filter(part => part !== undefined).join(', ');
  }

  /** Makes a text such as `34%, 4 s left`; empty if the share is not known. */
  protected timing(percent: string): string {
    return this.#shareAndTime(percent).join(', ');
  }

  #shareAndTime(percent: string): [share: string, left: string] | [] {
    const { share } = this;
    if (!share) return [];
    // Without progress, there is no rate for an estimate.
    const left =
      this.done === 0
        ? 'no response yet'
        : share === 1
          ? 'finishing'
          : timeLeft(performance.now() - this.startMs, share);
    return [`${Math.floor(share * 100)}${percent}`, left];
  }

  /** Prints a line that may contain text of a file, and removes the bar until its next update. */
  say(line: string, print = console.error): void {
    clearBar();
    print(visible(line));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    clearBar();
  }
}

/** @returns the completed share, from 0 to 1; undefined if the total is not known */
export function shareOf(done: number, total: number | undefined): number | undefined {
  if (total === undefined) return undefined;
  if (total === 0) return 0;
  // A store may grow while it is read.
  return Math.min(1, done / total);
}

function drawBar(share: number | undefined, text: string): void {
  clearBar();
  // Some terminals report no width.
  const columns = process.stderr.columns || COLUMNS;
  const bar = `[${'#'.repeat(Math.round((share ?? 0) * BAR_LENGTH)).padEnd(BAR_LENGTH, '.')}] `;
  const isBarShown = share !== undefined && bar.length + text.length <= columns;
  // A longer text would wrap, and only one line is cleared.
  process.stderr.write(`${isBarShown ? bar : ''}${text}`.slice(0, columns));
}

function clearBar(): void {
  if (!process.stderr.isTTY) return;
  process.stderr.cursorTo(0);
  process.stderr.clearLine(0);
}

/** Remaining time at the rate so far, such as `8 s left`, `3 min left` or `2 h 5 min left`. */
function timeLeft(elapsedMs: number, share: number): string {
  const seconds = Math.ceil(((elapsedMs / share) * (1 - share)) / 1000);
  if (seconds < 60) return `${seconds} s left`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min left` : `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}
