import type { Clock } from '../../src/core/clock.ts';
import { seededRandom } from '../harness/seeded-random.ts';

/** The virtual clocks begin at these times. */
const START_MS = 1_000_000;
const START_WALL_MS = Date.UTC(2026, 0, 1);
/** A timer of Node is late if the event loop is busy. */
const TIMER_LATE_MAX_MS = 20;
/** All timestamps of a run are less than one millisecond ahead of the time. */
const TIMESTAMP_STEP_MS = 1 / 1_000_000;
/** More events than any run has. Then something repeats without end. */
const EVENTS_MAX = 100_000;

interface Event {
  atMs: number;
  /** Among the events of one time, the seed decides the order. */
  rank: number;
  action: (() => void) | undefined;
}

/**
 * The time, the timers and the I/O of a simulation. Nothing takes real time. A seed decides how long
 * each I/O takes, how late each timer is, and the order of events at the same time. The same seed
 * has the same events.
 *
 * Between two events all microtasks run, as in the event loop of Node.
 */
export class Scheduler implements Clock {
  /** Draws an integer from 0 to `below - 1`. */
  readonly random: (below: number) => number;
  readonly #events = new EventHeap();
  #nowMs = START_MS;
  /** Wall clock minus monotonic clock. */
  #wallAheadMs = START_WALL_MS - START_MS;
  #error: { cause: unknown } | undefined;
  #timestamps = 0;
  /** Events so far. */
  steps = 0;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  now(): number {
    return this.#nowMs;
  }

  wallNow(): number {
    return Math.floor(this.#nowMs + this.#wallAheadMs);
  }

  /** The time, in ms. Each one is later than the one before, also within an event. */
  timestamp(): number {
    return this.#nowMs + ++this.#timestamps * TIMESTAMP_STEP_MS;
  }

  setTimer(callback: () => void, delayMs: number): Disposable {
    const lateMs = this.happens(10) ? this.random(TIMER_LATE_MAX_MS + 1) : 0;
    return this.#add(this.#nowMs + Math.max(0, delayMs) + lateMs, callback);
  }

  nextIteration(callback: () => void): void {
    this.#add(this.#nowMs, callback);
  }

  /** Does something at a time that the seed chooses, such as the end of an I/O. */
  later(minMs: number, maxMs: number, action: () => void): void {
    this.#add(this.#nowMs + minMs + this.random(maxMs - minMs + 1), action);
  }

  /** Settles at a time that the seed chooses. */
  pause(minMs: number, maxMs = minMs): Promise<void> {
    return new Promise(resolve => this.later(minMs, maxMs, resolve));
  }

  /** Whether something happens that has this probability, in percent. */
  happens(percent: number): boolean {
    return this.random(100) < percent;
  }

  pick<Value>(...values: readonly Value[]): Value {
    return values[this.random(values.length)]!;
  }

  /** As when an operator sets the clock, or the machine was suspended for so long. */
  moveWall(ms: number): void {
    this.#wallAheadMs += ms;
  }

  /**
   * Runs a task of the simulation. An error of it ends the run, which throws it.
   *
   * @returns settles when the task has ended, or has failed
   */
  start(task: () => Promise<void>): Promise<void> {
    return task().catch(cause => {
      this.#error ??= { cause };
    });
  }

  /** Repeats an action after pauses that the seed chooses, as {@link start} runs a task. */
  repeat(pauseMsMax: number, isOver: () => boolean, action: () => Promise<void>): Promise<void> {
    return this.start(async () => {
      for (;;) {
        await this.pause(0, pauseMsMax);
        if (isOver()) break;
        await action();
      }
    });
  }

  /**
   * Lets time pass until a time, or until no event is left.
   *
   * @param check called after each event and its consequences; throws if the state is wrong
   */
  async runUntil(endMs: number, check: () => void): Promise<void> {
    for (;;) {
      await microtasksDone();
      // The callbacks of streams and of the response queue, and what follows from them.
      await microtasksDone();
      if (this.#error !== undefined) throw this.#error.cause;
      check();
      const next = this.#events.first();
      if (next === undefined || next.atMs > endMs) break;
      this.#events.removeFirst();
      if (next.action === undefined) continue;
      if (++this.steps > EVENTS_MAX) throw new Error('something is repeated without end');
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.action();
    }
  }

  #add(atMs: number, action: () => void): Disposable {
    const event: Event = { atMs, rank: this.random(2 ** 32), action };
    this.#events.add(event);
    return {
      [Symbol.dispose]: () => {
        event.action = undefined;
      },
    };
  }
}

/**
 * Settles when no microtask is left: then Node runs the callbacks of `process.nextTick`. No simulated
 * part needs an iteration of the event loop, which would take longer than most steps.
 */
function microtasksDone(): Promise<void> {
  return new Promise(resolve => process.nextTick(resolve));
}

/** A binary heap; the earliest event is first. */
class EventHeap {
  readonly #events: Event[] = [];

  first(): Event | undefined {
    return this.#events[0];
  }

  add(event: Event): void {
    const events = this.#events;
    let at = events.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, events[parent]!)) break;
      events[at] = events[parent]!;
      at = parent;
    }
    events[at] = event;
  }

  removeFirst(): void {
    const events = this.#events;
    const last = events.pop()!;
    if (events.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child + 1 < events.length && isBefore(events[child + 1]!, events[child]!)) child++;
      if (child >= events.length || !isBefore(events[child]!, last)) break;
      events[at] = events[child]!;
      at = child;
    }
    events[at] = last;
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.rank < other.rank);
}
