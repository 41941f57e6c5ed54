import { spread } from '../test/harness/statistics.ts';
import { type ByRound, byRound, type Measurement, ratio } from './measurements.ts';
import { INSTANCES, NAMES, STORED_PLANTS } from './parts.ts';
import type { Row } from './rows.ts';
import { DURABLE_PEERS, FASTIFY_ECHO, FLUSHED_ECHO, HTTP_ECHO, LESS_DURABLE_PEER } from './subjects.ts';

const MB = 1_000_000;

/**
 * The bars of the plant store, with the results. Both sides of a ratio are from the same run.
 *
 * @param measured the last measurements of each part; a part may be absent
 */
export function barsOf(measured: Readonly<Record<string, readonly Measurement[]>>): Row[] {
  const { load = [], stored = [], start = [], instances = [], faults = [], install = [] } = measured;
  const rate = (subject: string) => (connections?: number) =>
    byRound(load, subject, 'ratePerSecond', connections === undefined ? {} : { connections });
  const ours = rate(NAMES.sqlite);
  const durable = (connections: number) => best(DURABLE_PEERS.map(({ name }) => rate(name)(connections)));
  const cpu = (subject: string) => (connections: number) => byRound(load, subject, 'cpuUs', { connections });
  const memory = (subject: string) => byRound(load, subject, 'residentPeakBytes');
  const starts = (subject: string) => byRound(start, subject, 'startMs');
  return [
    ...connectionBars(
      'creates/s against flushed node:http',
      { 1: 0.95, 64: 1, 256: 1.15 },
      ours,
      rate(FLUSHED_ECHO.name),
    ),
    ...connectionBars(
      'CPU time against flushed node:http',
      { 1: 1.1, 64: 1, 256: 0.85 },
      cpu(NAMES.sqlite),
      cpu(FLUSHED_ECHO.name),
      atMost => ({ atMost }),
    ),
    ...connectionBars(
      'creates/s against a bare node:http echo',
      { 64: 0.65, 256: 1.05 },
      ours,
      rate(HTTP_ECHO.name),
    ),
    ...connectionBars('creates/s against the best durable peer', { 1: 0.7, 64: 7, 256: 7 }, ours, durable),
    ...connectionBars(
      'creates/s against the fastest less durable peer',
      { 64: 1.1, 256: 1.1 },
      ours,
      rate(LESS_DURABLE_PEER.name),
    ),
    ...storedBars(stored),
    ...connectionBars(
      'creates/s on PostgreSQL against SQLite',
      { 64: 0.6, 256: 0.6 },
      rate(NAMES.postgres),
      ours,
    ),
    ...connectionBars(
      'creates/s on Citus against PostgreSQL',
      { 64: 0.6, 256: 0.6 },
      rate(NAMES.citus),
      rate(NAMES.postgres),
    ),
    {
      what: 'import against creates/s, 64 connections',
      bar: { atLeast: 0.7 },
      reached: ratio(rate('import')(), ours(64)),
    },
    {
      what: 'start to first 200 against a Fastify echo',
      bar: { atMost: 0.9 },
      reached: ratio(starts(NAMES.sqlite), starts(FASTIFY_ECHO.name)),
    },
    {
      what: 'resident memory under load against a Fastify echo',
      bar: { atMost: 1.5 },
      reached: ratio(memory(NAMES.sqlite), memory(FASTIFY_ECHO.name)),
    },
    {
      what: 'disk space of an install that only runs the service',
      bar: { atMost: 260 },
      reached: spread(install.map(({ figures }) => figures.diskBytes! / MB)),
      unit: 'MB',
    },
    {
      what: 'start of the executable against the checkout',
      reached: ratio(starts(NAMES.executable), starts(NAMES.sqlite)),
    },
    ...[64, 192].map(connections => {
      const [one, several] = INSTANCES.map(count =>
        byRound(instances, `instances: ${count}`, 'ratePerSecond', { connections }),
      );
      return {
        what: `creates/s of ${INSTANCES[1]} instances against one on PostgreSQL, ${connections} connections`,
        reached: ratio(several!, one!),
      };
    }),
    ...[...new Set(faults.map(({ subject }) => subject))].map(subject => ({
      what: `longest latency, ${subject}`,
      reached: longestLatencyMs(faults, subject),
      unit: 'ms',
    })),
  ];
}

/** A row for each number of connections, with the ratio that reaches its bar. */
function connectionBars(
  what: string,
  bars: Readonly<Record<number, number>>,
  ours: (connections: number) => ByRound,
  theirs: (connections: number) => ByRound,
  barOf = (atLeast: number): NonNullable<Row['bar']> => ({ atLeast }),
): Row[] {
  return Object.entries(bars).map(([connections, limit]) => ({
    what: `${what}, connections: ${connections}`,
    bar: barOf(limit),
    reached: ratio(ours(Number(connections)), theirs(Number(connections))),
  }));
}

/** Compares a store of 10 million plants with an almost empty one. */
function storedBars(stored: readonly Measurement[]): Row[] {
  const [empty, most] = [STORED_PLANTS[0]!, STORED_PLANTS.at(-1)!];
  const row = (ids: string, subject: string, connections: number, atLeast: number): Row => ({
    what: `creates/s with 10 million stored against an empty store, ${ids} ids, ${connections} connections`,
    bar: { atLeast },
    reached: ratio(
      byRound(stored, subject, 'ratePerSecond', { connections, stored: most }),
      byRound(stored, NAMES.sqlite, 'ratePerSecond', { connections, stored: empty }),
    ),
  });
  return [
    row('ascending', NAMES.sqlite, 64, 0.95),
    row('random', NAMES.sqliteRandom, 64, 0.4),
    row('random', NAMES.sqliteRandom, 256, 0.3),
  ];
}

/** The highest value of each round that has all values: the best one could be missing otherwise. */
function best(all: readonly ByRound[]): ByRound {
  const rounds = [...all[0]!.keys()].filter(round => all.every(each => each.has(round)));
  return new Map(rounds.map(round => [round, Math.max(...all.map(each => each.get(round)!))]));
}

function longestLatencyMs(faults: readonly Measurement[], subject: string): Row['reached'] {
  const rounds = Map.groupBy(
    faults.filter(each => each.subject === subject),
    ({ round }) => round,
  );
  return spread(
    [...rounds.values()].map(of => Math.max(...of.map(({ figures }) => (figures.maxUs ?? 0) / 1000))),
  );
}
