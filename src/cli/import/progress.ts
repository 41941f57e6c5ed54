import { SingleBar } from 'cli-progress';
import { PROGRESS_INTERVAL_MS } from './limits.ts';
import { formatCount, perSecond, type Tally } from './tally.ts';

/**
 * Shows on stderr how far the import is: a bar on a terminal, else a plain line every ten seconds. It says
 * everything else that goes to stderr meanwhile, so that the bar and the lines keep apart.
 */
export class Progress {
  readonly #tally: Tally;
  readonly #bytesTotal: number | undefined;
  readonly #startMs = performance.now();
  readonly #bar: SingleBar | undefined;
  readonly #timer: NodeJS.Timeout;
  #bytesRead = 0;

  /** @param bytesTotal of all files as they are stored; undefined when nobody knows */
  constructor(tally: Tally, bytesTotal: number | undefined) {
    this.#tally = tally;
    this.#bytesTotal = bytesTotal;
    if (process.stderr.isTTY) {
      this.#bar = new SingleBar({
        stream: process.stderr,
        format: bytesTotal === undefined ? '{state}' : '[{bar}] {state}',
        barCompleteChar: '#',
        barIncompleteChar: '.',
        barsize: 24,
        clearOnComplete: true,
        hideCursor: true,
        // Ctrl-C is the command's own to handle.
        gracefulExit: false,
      });
      this.#bar.start(bytesTotal ?? 0, 0, { state: this.#state() });
      this.#timer = setInterval(() => this.#bar?.update(this.#bytesRead, { state: this.#state() }), 100);
    } else {
      this.#timer = setInterval(() => console.error(this.#state()), PROGRESS_INTERVAL_MS);
    }
    this.#timer.unref();
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
    if (this.#bar !== undefined) {
      process.stderr.cursorTo(0);
      process.stderr.clearLine(0);
    }
    console.error(line);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#bar?.stop();
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
      parts.splice(3, 0, `${duration((elapsedMs / share) * (1 - share))} left`);
    }
    return parts.join(', ');
  }
}

/** Such as `8 s`, `3 min` or `2 h 5 min`. */
function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
