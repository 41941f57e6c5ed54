import { median, quantile } from '../../test/harness/statistics.ts';
import type { Axis, Plot } from '../plot.ts';
import type { PrefilledStores } from './prefilled-stores.ts';

/** What a curve is measured with. */
export interface Bench {
  /** Repetitions of each place. */
  rounds: number;
  /** Length of a load. */
  seconds: number;
  /** The largest store that is made, in plants. */
  plantsMax: number;
  stores: PrefilledStores;
  /** Ends it early. */
  signal: AbortSignal;
  /** Tells a person what runs now. */
  report(doing: string): void;
}

/** A place on a curve: where on the x axis, and on which line. */
export interface Place {
  at: number;
  of: string;
}

/** A place with what was measured there, each figure once in each round. */
export interface MeasuredPlace extends Place {
  figures: Record<string, number[]>;
}

/** One of the things with which the cost of a plant may grow. */
export interface Curve {
  /** Of its plot's file, and for `--only`. */
  name: string;
  title: string;
  description: string;
  x: Axis;
  /** Each shows one figure of the places that have it, in a unit of its own. */
  panels: readonly { y: Axis; figure: string; unit?: number }[];
  measure(bench: Bench): Promise<MeasuredPlace[]>;
}

/** The plot of a curve from its figures: medians, with the lowest and the highest of the rounds. */
export function plotOf({ title, description, x, panels }: Curve, places: readonly MeasuredPlace[]): Plot {
  const lines = [...new Set(places.map(({ of }) => of))];
  return {
    title,
    description,
    panels: panels.map(({ y, figure, unit = 1 }) => ({
      x,
      y,
      series: lines
        .map(name => ({
          name,
          points: places
            .filter(({ of, figures }) => of === name && figures[figure] !== undefined)
            .map(({ at, figures }) => {
              const values = figures[figure]!.map(value => value / unit);
              return { x: at, y: median(values), low: quantile(values, 0), high: quantile(values, 1) };
            }),
        }))
        .filter(({ points }) => points.length > 0),
    })),
  };
}

/**
 * Measures every place once in each round, in another order each time, so that a machine that gets slower or faster
 * meanwhile draws no slope.
 *
 * @returns the places in the order they were given
 */
export async function measureInRounds<Where extends Place>(
  bench: Bench,
  places: readonly Where[],
  measure: (place: Where) => Promise<Record<string, number>>,
): Promise<MeasuredPlace[]> {
  const measured = places.map(({ at, of }): MeasuredPlace => ({ at, of, figures: {} }));
  for (let round = 1; round <= bench.rounds; round++) {
    for (const index of shuffled([...places.keys()])) {
      bench.signal.throwIfAborted();
      const { at, of } = places[index]!;
      bench.report(`round ${round} of ${bench.rounds}: ${of}, ${at.toLocaleString('en')}`);
      const { figures } = measured[index]!;
      for (const [name, value] of Object.entries(await measure(places[index]!))) {
        figures[name] = [...(figures[name] ?? []), value];
      }
    }
  }
  return measured;
}

/** In a random order (Fisher and Yates). */
export function shuffled<Value>(values: readonly Value[]): Value[] {
  const order = [...values];
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [order[last], order[other]] = [order[other]!, order[last]!];
  }
  return order;
}

/** Powers of ten from the first to the last. */
export function powersOfTen(first: number, last: number): number[] {
  const powers = [];
  for (let power = first; power <= last; power *= 10) powers.push(power);
  return powers;
}
