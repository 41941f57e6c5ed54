import type { LoadResult } from '../test/harness/load.ts';
import type { Machine } from './machine.ts';
import type { Subject } from './subjects.ts';

/** All that a run of the benchmark measured; `results.json` is this. */
export interface Results {
  date: string;
  machine: Machine;
  settings: Durations & { rounds: number; importFile: string };
  /** Of the processors' time while it ran, what other machines on the same hardware had; undefined where nobody says. */
  stolenShare: number | undefined;
  trials: Trial[];
  /** What could not be measured, and why. */
  failures: { name: string; reason: string }[];
  fsyncs: { round: number; perSecond: number; medianUs: number }[];
  batchInserts: { round: number; rowsPerSecond: number }[];
  imports: { round: number; rows: number; rowsPerSecond: number }[];
  openLoops: OpenLoop[];
}

/** How long loads take. */
export interface Durations {
  /** Of a load before the first that counts: a runtime compiles what runs often only after some seconds of it. */
  warmUpSeconds: number;
  seconds: number;
}

/** One subject in one round, in a process of its own. */
export interface Trial {
  round: number;
  subject: string;
  kind: Subject['kind'];
  note?: string;
  ids: 'ascending' | 'random';
  startMs: number;
  /** The most it held, all drives included. */
  residentPeakBytes: number;
  bytesPerPlant?: number;
  drives: Drive[];
}

/** A closed loop for some seconds. */
export interface Drive extends LoadResult {
  connections: number;
  /** Of the server's process, user and system, for each request. */
  cpuUs: number;
  residentBytes: number;
  /** Of the database server beside it, for each request. */
  databaseCpuUs?: number;
  databaseLogBytes?: number;
}

export interface OpenLoop extends LoadResult {
  round: number;
  subject: string;
  /** At which requests were due, not those answered. */
  dueRatePerSecond: number;
  connections: number;
  unanswered: number;
}

/** Requests a second of a subject at a number of connections, by round. */
export function ratesByRound(
  trials: readonly Trial[],
  subject: string,
  connections: number,
): Map<number, number> {
  return figuresByRound(trials, subject, trial => driveAt(trial, connections)?.ratePerSecond);
}

/** A figure of a subject, by round; rounds without it are left out. */
export function figuresByRound(
  trials: readonly Trial[],
  subject: string,
  figure: (trial: Trial) => number | undefined,
): Map<number, number> {
  return new Map(
    trials
      .filter(trial => trial.subject === subject)
      .map(trial => [trial.round, figure(trial)] as const)
      .filter((entry): entry is [number, number] => entry[1] !== undefined),
  );
}

export function driveAt(trial: Trial, connections: number): Drive | undefined {
  return trial.drives.find(drive => drive.connections === connections);
}
