import { median, quantile } from '../test/harness/statistics.ts';
import { driveAt, figuresByRound, type Results, ratesByRound, type Trial } from './results.ts';
import { NAMES, PEERS } from './subjects.ts';

/** What a figure must be against another of the same run. */
export interface Bar {
  what: string;
  direction: '≥' | '≤';
  required: number;
  /** Median over the rounds of the ratio within a round; undefined when one side was not measured. */
  reached: number | undefined;
  /** Where the figure is no ratio. */
  unit?: string;
}

/** A figure in each round that has it. */
type ByRound = ReadonlyMap<number, number>;

/** The figures that the plant store is to reach, and what this run reached. */
export function barsOf(results: Results): Bar[] {
  const { trials } = results;
  return [
    ...[64, 256].flatMap(connections => loadBars(trials, connections)),
    atMost(
      2,
      'median latency with one connection against one flush of the disk',
      figuresByRound(trials, NAMES.sqlite, trial => driveAt(trial, 1)?.p50Us),
      new Map(results.fsyncs.map(({ round, medianUs }) => [round, medianUs])),
    ),
    ...storedBars(trials),
    atLeast(
      0.7,
      'import against creates with 64 connections',
      new Map(results.imports.map(({ round, rowsPerSecond }) => [round, rowsPerSecond])),
      ratesByRound(trials, NAMES.sqlite, 64),
    ),
    atMost(
      2,
      'resident memory under load against a Fastify echo',
      figuresByRound(trials, NAMES.sqlite, trial => trial.residentPeakBytes),
      figuresByRound(trials, NAMES.fastifyEcho, trial => trial.residentPeakBytes),
    ),
    atMost(
      2,
      'start to first 200 against a Fastify echo',
      figuresByRound(trials, NAMES.sqlite, trial => trial.startMs),
      figuresByRound(trials, NAMES.fastifyEcho, trial => trial.startMs),
    ),
  ];
}

/** What holds at each number of connections that fills batches. */
function loadBars(trials: readonly Trial[], connections: number): Bar[] {
  const at = `${connections} connections`;
  const rates = (subject: string) => ratesByRound(trials, subject, connections);
  const cpu = (subject: string) =>
    figuresByRound(trials, subject, trial => driveAt(trial, connections)?.cpuUs);
  const ours = rates(NAMES.sqlite);
  const durable = bestRates(trials, 'durable peer', connections);
  const weaker = bestRates(trials, 'weaker peer', connections);
  return [
    atLeast(0.9, `creates against a Fastify echo, ${at}`, ours, rates(NAMES.fastifyEcho)),
    atLeast(0.75, `creates against a bare echo, ${at}`, ours, rates(NAMES.httpEcho)),
    atMost(1.5, `CPU per create against a bare echo, ${at}`, cpu(NAMES.sqlite), cpu(NAMES.httpEcho)),
    atLeast(10, `creates against the best durable peer, ${at}`, ours, durable),
    atLeast(1.1, `creates against the best peer with less durability, ${at}`, ours, weaker),
    atLeast(0.6, `creates on PostgreSQL against SQLite, ${at}`, rates(NAMES.postgres), ours),
  ];
}

/** What holds with 10 million plants stored, against an empty store that takes ascending ids. */
function storedBars(trials: readonly Trial[]): Bar[] {
  const empty = (connections: number) => ratesByRound(trials, NAMES.sqlite, connections);
  const ascending = ratesByRound(trials, NAMES.storedAscending, 64);
  const random = (connections: number) => ratesByRound(trials, NAMES.storedRandom, connections);
  return [
    atLeast(0.95, '10 million stored against none, 64 connections', ascending, empty(64)),
    atLeast(0.5, '10 million stored and random ids against none, 64 connections', random(64), empty(64)),
    atLeast(0.8, '10 million stored and random ids against none, 256 connections', random(256), empty(256)),
    longestWait(trials),
  ];
}

/** Whether a bar is reached; undefined when it was not measured. */
export function isReached({ direction, required, reached }: Bar): boolean | undefined {
  if (reached === undefined) return undefined;
  return direction === '≥' ? reached >= required : reached <= required;
}

function atLeast(required: number, what: string, ours: ByRound, theirs: ByRound): Bar {
  return { what, direction: '≥', required, reached: medianRatio(ours, theirs) };
}

function atMost(required: number, what: string, ours: ByRound, theirs: ByRound): Bar {
  return { what, direction: '≤', required, reached: medianRatio(ours, theirs) };
}

/** Only rounds that have both: within a round both sides saw the machine in the same state. */
function medianRatio(ours: ByRound, theirs: ByRound): number | undefined {
  const ratios = [...ours]
    .filter(([round]) => theirs.has(round))
    .map(([round, value]) => value / theirs.get(round)!);
  return ratios.length === 0 ? undefined : median(ratios);
}

/** No commit can have been stalled for longer than the request that waited longest. */
function longestWait(trials: readonly Trial[]): Bar {
  const waits = figuresByRound(trials, NAMES.storedRandom, trial => driveAt(trial, 64)?.maxUs);
  return {
    what: 'longest wait for an answer with 10 million stored, random ids, 64 connections, all rounds',
    direction: '≤',
    required: 20,
    reached: waits.size === 0 ? undefined : quantile([...waits.values()], 1) / 1000,
    unit: 'ms',
  };
}

/** Of the fastest peer of a kind, in each round in which all of them ran: without the fastest a bar is no bar. */
function bestRates(trials: readonly Trial[], kind: Trial['kind'], connections: number): ByRound {
  const peers = PEERS.filter(peer => peer.kind === kind);
  const rates = peers.map(({ name }) => ratesByRound(trials, name, connections));
  const rounds = [...(rates[0]?.keys() ?? [])].filter(round => rates.every(each => each.has(round)));
  return new Map(rounds.map(round => [round, Math.max(...rates.map(each => each.get(round)!))]));
}
