import { type Spread, spread } from '../test/harness/statistics.ts';

/**
 * The measurements of a subject in a round. Names in `figures` end with the unit, such as `cpuUs`.
 */
export interface Measurement {
  subject: string;
  round: number;
  /** Only for a load. */
  connections?: number;
  /** The number of plants in the store before. */
  stored?: number;
  /** The time since the start of a load. */
  atMs?: number;
  figures: Record<string, number>;
}

/** The value of a metric by round. */
export type ByRound = ReadonlyMap<number, number>;

/** The values of a metric of a subject, with at most one measurement in each round. */
export function byRound(
  measurements: readonly Measurement[],
  subject: string,
  metric: string,
  place: { connections?: number; stored?: number } = {},
): ByRound {
  const found = measurements.filter(
    each =>
      each.subject === subject &&
      each.connections === place.connections &&
      each.stored === place.stored &&
      metric in each.figures,
  );
  return new Map(found.map(({ round, figures }) => [round, figures[metric]!]));
}

/** Only rounds with both values count: the machine is in the same state within a round. */
export function ratio(ours: ByRound, theirs: ByRound): Spread | undefined {
  const rounds = [...ours.keys()].filter(round => theirs.has(round));
  return spread(rounds.map(round => ours.get(round)! / theirs.get(round)!));
}
