import type { Clock } from './clock.ts';
import { SHORT_BODY_MAX_BYTES } from './contract/limits.ts';
import { type NewPlantReading, readNewPlant, readNewPlantInSlices } from './contract/plant.ts';
import { IterationBudget } from './iteration-budget.ts';
import type { OpenRequest } from './request.ts';

/** Time per tick for the parsing of bodies longer than {@link SHORT_BODY_MAX_BYTES}. */
const LONG_BODY_BUDGET_MS = 2;

/** The result of parsing a body. */
export type ParsedBody =
  | { kind: 'parsed'; reading: NewPlantReading }
  /** Nobody waits for the response any more. */
  | { kind: 'abandoned' };

/**
 * Parses the bodies of all requests. Long bodies are parsed for a few milliseconds of each tick, so
 * that other requests do not wait for a body of a million members. They are parsed one after the
 * other, so that only one body has the names of its members in memory. A thread would not save
 * memory.
 */
export class BodyParser {
  readonly #longBodyBudget: IterationBudget;
  /** Settles when all long bodies so far are parsed. */
  #longBodiesParsed: Promise<unknown> = Promise.resolve();

  constructor(clock: Clock) {
    this.#longBodyBudget = new IterationBudget(LONG_BODY_BUDGET_MS, clock);
  }

  async parse(body: Uint8Array, open: OpenRequest): Promise<ParsedBody> {
    if (body.length <= SHORT_BODY_MAX_BYTES) return { kind: 'parsed', reading: readNewPlant(body) };
    const parsed = this.#longBodiesParsed.then(() => this.#parseInSlices(body, open));
    // A body that fails does not stop the bodies after it.
    this.#longBodiesParsed = parsed.catch(() => {});
    return await parsed;
  }

  async #parseInSlices(body: Uint8Array, open: OpenRequest): Promise<ParsedBody> {
    const slices = readNewPlantInSlices(body);
    for (;;) {
      if (!this.#longBodyBudget.hasTime()) await this.#longBodyBudget.nextIteration();
      if (!open.isAwaited) return { kind: 'abandoned' };
      const slice = slices.next();
      if (slice.done) return { kind: 'parsed', reading: slice.value };
    }
  }
}
