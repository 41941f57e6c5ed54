import { spread } from '../test/harness/statistics.ts';
import { barsOf } from './bars.ts';
import type { Measurement } from './measurements.ts';
import type { PartResults } from './rounds.ts';
import { formatNumber, rowTable, table } from './rows.ts';

const INTRODUCTION = `# Benchmark

\`npm run bench -- --only PART\` writes a section. Server, database and load share the machine. A round runs each server
once, in a new process, and every second round has the opposite order. Values are medians of the rounds, with 64 connections
unless the heading has another number. A ratio is the median of the ratios within the rounds.`;

/** The metrics in the charts of parts, which have no table. */
export const CHARTS: Record<string, string[]> = {
  connections: ['ratePerSecond', 'p50Us', 'p99Us'],
  stored: ['ratePerSecond'],
  faults: ['p50Us', 'maxUs', 'failures'],
};

interface Column {
  heading: string;
  /** The name in `figures`. */
  metric: string;
  /** A value is divided by this number for its column. */
  unit: number;
  /** Undefined if it is not measured for a number of connections. */
  connections?: number;
}

const COLUMNS: Column[] = [
  { heading: 'creates/s, 1', metric: 'ratePerSecond', unit: 1, connections: 1 },
  { heading: 'creates/s, 64', metric: 'ratePerSecond', unit: 1, connections: 64 },
  { heading: 'creates/s, 256', metric: 'ratePerSecond', unit: 1, connections: 256 },
  { heading: 'p99, ms', metric: 'p99Us', unit: 1000, connections: 64 },
  { heading: 'CPU for each, µs', metric: 'cpuUs', unit: 1, connections: 64 },
  { heading: 'CPU of PostgreSQL, µs', metric: 'databaseCpuUs', unit: 1, connections: 64 },
  { heading: 'its log, bytes', metric: 'databaseLogBytes', unit: 1, connections: 64 },
  { heading: 'most memory, MiB', metric: 'residentPeakBytes', unit: 2 ** 20 },
  { heading: 'disk for each, bytes', metric: 'bytesPerPlant', unit: 1 },
];

/** The report with a new section for a part, in place of an earlier one. */
export function updateReport(report: string, name: string, results: PartResults): string {
  const [, ...earlier] = report.split(/^(?=## )/m);
  const sections = new Map(earlier.map(text => [/^## (.*)/.exec(text)![1]!, text.trimEnd()]));
  sections.set(name, sectionOf(name, results));
  return `${[INTRODUCTION, ...sections.values()].join('\n\n')}\n`;
}

/** What was measured, on what, the bars that it concerns, and the measurements. */
function sectionOf(name: string, results: PartResults): string {
  const { measurements, failures } = results;
  const bars = barsOf({ [name]: measurements }).filter(({ reached }) => reached !== undefined);
  const paragraphs = [
    `## ${name}`,
    circumstancesOf(results),
    bars.length === 0 ? '' : rowTable(bars),
    CHARTS[name] === undefined ? metricTable(measurements) : `The chart is docs/growth/${name}.svg.`,
    failures.length === 0 ? '' : ['Not measured:', ...new Set(failures)].join('\n- '),
  ];
  return paragraphs.filter(paragraph => paragraph !== '').join('\n\n');
}

function circumstancesOf(results: PartResults): string {
  const { date, machine, rounds, warmUpSeconds, seconds, stolenShare } = results;
  const stolen = stolenShare === undefined ? '' : `; other machines took ${(stolenShare * 100).toFixed(1)} %`;
  return [
    `${date.slice(0, 16)}Z, rounds: ${rounds}, loads of ${seconds} s after a warm-up of ${warmUpSeconds} s`,
    `${machine}${stolen}.`,
  ].join('; ');
}

/** A row for each subject, with the columns that any of them has. */
function metricTable(measurements: readonly Measurement[]): string {
  const valuesOf = (of: readonly Measurement[], { metric, unit, connections }: Column): number[] =>
    of
      .filter(each => each.connections === connections && metric in each.figures)
      .map(({ figures }) => figures[metric]! / unit);
  const columns = COLUMNS.filter(column => valuesOf(measurements, column).length > 0);
  const groups = Map.groupBy(measurements, ({ subject }) => subject);
  const rows = [...groups].map(([what, of]) => [
    what,
    ...columns.map(column => {
      const found = spread(valuesOf(of, column));
      return found === undefined ? '' : formatNumber(found.median);
    }),
  ]);
  // A command such as import has only a bar.
  const measured = rows.filter(([, ...cells]) => cells.some(cell => cell !== ''));
  return measured.length === 0 ? '' : table(['', ...columns.map(({ heading }) => heading)], measured);
}
