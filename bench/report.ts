import { barsOf } from './bars.ts';
import type { Measurement } from './measurements.ts';
import type { PartResults } from './rounds.ts';
import { formatSpread, rowTable, table } from './rows.ts';

/** The columns of the tables. A value is divided by `unit` for its column. */
const COLUMNS: Record<string, { heading: string; unit: number }> = {
  ratePerSecond: { heading: 'plants/s', unit: 1 },
  p50Us: { heading: 'p50, ms', unit: 1000 },
  p99Us: { heading: 'p99, ms', unit: 1000 },
  maxUs: { heading: 'longest, ms', unit: 1000 },
  cpuUs: { heading: 'processor for each, µs', unit: 1 },
  databaseCpuUs: { heading: 'of PostgreSQL, µs', unit: 1 },
  databaseLogBytes: { heading: 'its log, bytes', unit: 1 },
  clientCpuUs: { heading: 'processor of the client for each, µs', unit: 1 },
  startMs: { heading: 'start to first 200, ms', unit: 1 },
  residentPeakBytes: { heading: 'most memory, MiB', unit: 2 ** 20 },
  bytesPerPlant: { heading: 'disk for each plant, bytes', unit: 1 },
  diskBytes: { heading: 'disk, MB', unit: 1e6 },
};

/** The results as Markdown. */
export function reportOf(parts: Readonly<Record<string, PartResults>>): string {
  const measurements = Object.entries(parts).map(([name, part]) => [name, part.measurements] as const);
  const sections = [
    '# Benchmark',
    'Written by `npm run bench`. Each value is the median of the rounds, with minimum and maximum. A round runs each server once, in a new process. Every second round has the opposite order. Server, database and load share the machine.',
    'A ratio is the median of the ratios within the rounds of one run.',
    rowTable(barsOf(Object.fromEntries(measurements))),
  ];
  for (const [name, part] of Object.entries(parts)) {
    sections.push(`## ${name}`, circumstancesOf(part));
    // Timelines of faults have too many values for a table: docs/growth has their picture.
    const whole = part.measurements.filter(({ atMs }) => atMs === undefined);
    sections.push(metricTable(whole.filter(each => each.connections !== undefined)));
    sections.push(metricTable(whole.filter(each => each.connections === undefined)));
    if (part.failures.length > 0) {
      sections.push(['Not measured:', ...new Set(part.failures)].join('\n- '));
    }
  }
  return `${sections.filter(section => section !== '').join('\n\n')}\n`;
}

function circumstancesOf({
  date,
  machine,
  rounds,
  warmUpSeconds,
  seconds,
  stolenShare,
}: PartResults): string {
  const { cpu, memoryBytes, kernel, fileSystem, versions } = machine;
  const stolen = stolenShare === undefined ? '' : `; other machines took ${(stolenShare * 100).toFixed(1)} %`;
  const tools = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${date.slice(0, 16)}Z, rounds: ${rounds}, loads of ${seconds} s after a warm-up of ${warmUpSeconds} s; ${cpu}`,
    `${(memoryBytes / 2 ** 30).toFixed(1)} GiB, ${kernel}, ${fileSystem}${stolen}; ${tools.join(', ')}.`,
  ].join(', ');
}

/** A row for each subject and load, with a column for each metric that any of them has. */
function metricTable(measurements: readonly Measurement[]): string {
  if (measurements.length === 0) return '';
  const columns = Object.entries(COLUMNS).filter(([name]) =>
    measurements.some(({ figures }) => name in figures),
  );
  const groups = Map.groupBy(measurements, ({ subject, connections, stored }) => {
    const load = [
      connections && `${connections} connection${connections === 1 ? '' : 's'}`,
      stored && `${stored.toLocaleString('en')} stored`,
    ];
    return [subject, ...load.filter(Boolean)].join(', ');
  });
  const rows = [...groups].map(([what, of]) => [
    what,
    ...columns.map(([name, { unit }]) =>
      formatSpread(of.filter(({ figures }) => name in figures).map(({ figures }) => figures[name]! / unit)),
    ),
  ]);
  return table(['', ...columns.map(([, { heading }]) => heading)], rows);
}
