/**
 * Simulates parts of the service, on all processors; `--help` lists the options.
 *
 *   npm run simulate -- --seeds 1000000
 */
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { count, type Happened } from './part.ts';
import { PARTS } from './parts.ts';
import type { Order, Report } from './simulation-thread.ts';

const NAMES = PARTS.map(({ name }) => name);

const HELP = `Usage: npm run simulate -- [options]

Runs parts of the service on virtual time. A seed decides the order of all
events, and each step is checked. It stops at the first wrong state, and prints
how to repeat it.

  --seeds COUNT   number of seeds, divided equally among the parts
                  (default: 100000)
  --first SEED    the first seed of each part (default: from the time)
  --only PART     runs only this part; can be repeated: ${NAMES.slice(0, 3).join(', ')},
                  ${NAMES.slice(3).join(', ')}

Exit codes: 0 no fault, 1 a fault or an error.
`;

/** How often the progress is shown on a terminal, and elsewhere. */
const SHOWN_INTERVAL_MS = 200;
const LOGGED_INTERVAL_MS = 60_000;
/** Seeds that a thread runs until it reports. */
const SEEDS_AT_A_TIME = 100;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100000' },
    first: { type: 'string', default: String(Date.now()) },
    only: { type: 'string', multiple: true, default: NAMES },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<void> {
  const parts = values.only;
  const unknown = parts.find(name => !NAMES.includes(name));
  if (unknown !== undefined)
    throw new Error(`there is no part ${unknown}; the parts are ${NAMES.join(', ')}`);
  const seeds = Math.ceil(wholeNumber('--seeds', values.seeds) / parts.length);
  const orders = ordersOf(parts, wholeNumber('--first', values.first), seeds);
  const progress = new Progress(seeds * parts.length);
  await Promise.all(Array.from({ length: availableParallelism() }, () => runThread(orders, progress)));
  progress.end();
}

function wholeNumber(name: string, value: string): number {
  if (!/^[0-9]{1,15}$/.test(value)) throw new Error(`${name} needs a whole number`);
  return Number(value);
}

/** The parts take turns. */
function* ordersOf(parts: readonly string[], first: number, seeds: number): Generator<Order> {
  for (let done = 0; done < seeds; done += SEEDS_AT_A_TIME)
    for (const part of parts)
      yield { part, first: first + done, seeds: Math.min(SEEDS_AT_A_TIME, seeds - done) };
}

/** Runs orders in a thread of its own until none is left, or a fault was found. */
async function runThread(orders: Generator<Order>, progress: Progress): Promise<void> {
  const worker = new Worker(new URL('./simulation-thread.ts', import.meta.url));
  for (let next = orders.next(); !next.done && !progress.hasFault; next = orders.next()) {
    worker.postMessage(next.value);
    const [report] = (await once(worker, 'message')) as [Report];
    progress.add(next.value, report);
  }
  await worker.terminate();
}

class Progress {
  readonly #seedsMax: number;
  readonly #beganAt = performance.now();
  readonly #happened: Happened = {};
  readonly #faults: string[] = [];
  #shownAt = performance.now();
  #seeds = 0;
  #steps = 0;

  constructor(seedsMax: number) {
    this.#seedsMax = seedsMax;
  }

  get hasFault(): boolean {
    return this.#faults.length > 0;
  }

  add({ part, seeds }: Order, report: Report): void {
    if (report.kind === 'fault') {
      this.#faults.push(report.message);
      return;
    }
    this.#seeds += seeds;
    this.#steps += report.steps;
    for (const [what, times] of Object.entries(report.happened))
      count(this.#happened, `${part}: ${what}`, times);
    this.#show();
  }

  end(): void {
    if (process.stderr.isTTY) process.stderr.write('\n');
    for (const [what, times] of Object.entries(this.#happened).sort())
      console.log(`${what}: ${shown(times)}`);
    console.log(`${this.#rate()}, ${shown(this.#steps)} steps, ${this.#faults.length} faults`);
    for (const fault of this.#faults) console.error(fault);
    process.exitCode = this.hasFault ? 1 : 0;
  }

  #show(): void {
    const isTerminal = process.stderr.isTTY;
    const now = performance.now();
    if (now - this.#shownAt < (isTerminal ? SHOWN_INTERVAL_MS : LOGGED_INTERVAL_MS)) return;
    this.#shownAt = now;
    const progress = `${this.#rate()} of ${shown(this.#seedsMax)}`;
    process.stderr.write(isTerminal ? `\r${progress}` : `${progress}\n`);
  }

  #rate(): string {
    const seconds = (performance.now() - this.#beganAt) / 1_000;
    return `${shown(this.#seeds)} seeds, ${shown(Math.round(this.#seeds / seconds))} a second`;
  }
}

function shown(number: number): string {
  return number.toLocaleString('en');
}

if (values.help) process.stdout.write(HELP);
else await main();
