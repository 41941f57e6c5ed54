/** Between two lines of progress when stderr is not a terminal. */
const LINE_INTERVAL_MS = 10_000;
const BAR_INTERVAL_MS = 100;
const BAR_LENGTH = 24;
const COLUMNS = 80;

/**
 * Shows on stderr how far a command is: a bar on a terminal, else a plain line every ten seconds. It says everything
 * else that goes to stderr meanwhile, so that the bar and the lines keep apart.
 */
export abstract class ProgressDisplay {
  protected readonly startMs = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    const { isTTY } = process.stderr;
    const show = () => (isTTY ? drawBar(this.share, this.state()) : console.error(this.state()));
    this.#timer = setInterval(show, isTTY ? BAR_INTERVAL_MS : LINE_INTERVAL_MS).unref();
  }

  /** What is done, from 0 to 1; undefined when nobody knows: then there is no bar, only the words. */
  protected abstract get share(): number | undefined;

  /** How far it is, in a few words with numbers. */
  abstract state(): string;

  /** Says a line between two states of the bar. */
  say(line: string): void {
    clearBar();
    console.error(line);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    clearBar();
  }
}

function drawBar(share: number | undefined, text: string): void {
  const bar = '#'.repeat(Math.round((share ?? 0) * BAR_LENGTH)).padEnd(BAR_LENGTH, '.');
  clearBar();
  const line = share === undefined ? text : `[${bar}] ${text}`;
  // What does not fit would make a second line, which is not cleared. Some terminals do not say their width.
  process.stderr.write(line.slice(0, process.stderr.columns || COLUMNS));
}

function clearBar(): void {
  if (!process.stderr.isTTY) return;
  process.stderr.cursorTo(0);
  process.stderr.clearLine(0);
}

/** How long the rest takes at the pace so far, such as `8 s left`, `3 min left` or `2 h 5 min left`. */
export function timeLeft(elapsedMs: number, share: number): string {
  return `${duration((elapsedMs / share) * (1 - share))} left`;
}

function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const whole = new Intl.NumberFormat('en-GB');

export function formatCount(count: number): string {
  return whole.format(count);
}

export function perSecond(count: number, ms: number): number {
  return ms > 0 ? Math.round((count * 1000) / ms) : 0;
}

/** Such as `1 plant` or `2,000 plants`. */
export function amount(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Shows how far a command is by what it counts; `using` ends it. */
export class CountedProgress extends ProgressDisplay {
  title: string;
  done = 0;
  /** 0 until it is known. */
  total: number | undefined;
  readonly #unit: string;

  /**
   * @param title what the command does, such as `copying`
   * @param unit what is counted, such as `revisions`
   * @param total of them; undefined where nobody will know
   */
  constructor(title: string, unit: string, total: number | undefined) {
    super();
    this.title = title;
    this.total = total;
    this.#unit = unit;
  }

  protected get share(): number | undefined {
    // A store may take more while it is read.
    return this.total && Math.min(1, this.done / this.total);
  }

  /** Such as `copying: 34%, 51,717 revisions, 74,630/s, 4 s left`. */
  state(): string {
    if (this.done === 0) return this.title;
    const elapsedMs = performance.now() - this.startMs;
    const rate = formatCount(perSecond(this.done, elapsedMs));
    const counts = `${formatCount(this.done)} ${this.#unit}, ${rate}/s`;
    const { share } = this;
    if (!share) return `${this.title}: ${counts}`;
    return `${this.title}: ${Math.floor(share * 100)}%, ${counts}, ${timeLeft(elapsedMs, share)}`;
  }
}
