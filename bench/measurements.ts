import { type Spread, spread } from '../test/harness/statistics.ts';

/** What was measured of a subject in a round: figures by name, with the unit last, such as `cpuUs`. */
export interface Measurement {
  subject: string;
  round: number;
  /** Of a load. */
  connections?: number;
  /** Plants that the store held before. */
  stored?: number;
  /** In the course of a load. */
  atMs?: number;
  figures: Record<string, number>;
}

/** A figure in each round that has it. */
export type ByRound = ReadonlyMap<number, number>;

/** A figure of one subject, at a place where it has been measured once in each round at most. */
export function byRound(
  measurements: readonly Measurement[],
  subject: string,
  figure: string,
  place: { connections?: number; stored?: number } = {},
): ByRound {
  const found = measurements.filter(
    each =>
      each.subject === subject &&
      each.connections === place.connections &&
      each.stored === place.stored &&
      figure in each.figures,
  );
  return new Map(found.map(({ round, figures }) => [round, figures[figure]!]));
}

/** Only of rounds that have both: within a round both sides saw the machine in the same state. */
export function ratio(ours: ByRound, theirs: ByRound): Spread | undefined {
  const rounds = [...ours.keys()].filter(round => theirs.has(round));
  return spread(rounds.map(round => ours.get(round)! / theirs.get(round)!));
}
