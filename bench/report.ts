import { barsOf } from './bars.ts';
import type { Measurement } from './measurements.ts';
import type { PartResults } from './rounds.ts';
import { rowTable, shownSpread, table } from './rows.ts';

/** Of the figures: what a reader calls them, and how many of their unit are one of the table's. */
const COLUMNS: Record<string, { head: string; unit: number }> = {
  ratePerSecond: { head: 'plants/s', unit: 1 },
  p50Us: { head: 'p50, ms', unit: 1000 },
  p99Us: { head: 'p99, ms', unit: 1000 },
  maxUs: { head: 'longest, ms', unit: 1000 },
  cpuUs: { head: 'processor for each, µs', unit: 1 },
  databaseCpuUs: { head: 'of PostgreSQL, µs', unit: 1 },
  databaseLogBytes: { head: 'its log, bytes', unit: 1 },
  clientCpuUs: { head: 'processor of the client for each, µs', unit: 1 },
  startMs: { head: 'start to first 200, ms', unit: 1 },
  residentPeakBytes: { head: 'most memory, MiB', unit: 2 ** 20 },
  bytesPerPlant: { head: 'disk for each plant, bytes', unit: 1 },
  diskBytes: { head: 'disk, MB', unit: 1e6 },
};

/** The results as Markdown, for a file and for the terminal alike. */
export function reportOf(parts: Readonly<Record<string, PartResults>>): string {
  const measurements = Object.entries(parts).map(([name, part]) => [name, part.measurements] as const);
  const sections = [
    '# Benchmark',
    'Made by `npm run bench`. A figure is the median over the rounds, with the least and the greatest behind it. A round runs each server once, in a process of its own, and every other round in the opposite order. Server, database and load share the machine.',
    'A ratio is the median of the ratios within the rounds of one run.',
    rowTable(barsOf(Object.fromEntries(measurements))),
  ];
  for (const [name, part] of Object.entries(parts)) {
    sections.push(`## ${name}`, circumstancesOf(part));
    // Of a fault there is a figure for each instant: docs/growth has the picture.
    const whole = part.measurements.filter(({ atMs }) => atMs === undefined);
    sections.push(figureTable(whole.filter(each => each.connections !== undefined)));
    sections.push(figureTable(whole.filter(each => each.connections === undefined)));
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
    `${date.slice(0, 16)}Z, rounds: ${rounds}, loads of ${seconds} s behind one of ${warmUpSeconds} s; ${cpu}`,
    `${(memoryBytes / 2 ** 30).toFixed(1)} GiB, ${kernel}, ${fileSystem}${stolen}; ${tools.join(', ')}.`,
  ].join(', ');
}

/** A line for each subject and place, with the figures that any of them has. */
function figureTable(measurements: readonly Measurement[]): string {
  if (measurements.length === 0) return '';
  const columns = Object.entries(COLUMNS).filter(([name]) =>
    measurements.some(({ figures }) => name in figures),
  );
  const groups = Map.groupBy(measurements, ({ subject, connections, stored }) => {
    const place = [
      connections && `${connections} connection${connections === 1 ? '' : 's'}`,
      stored && `${stored.toLocaleString('en')} stored`,
    ];
    return [subject, ...place.filter(Boolean)].join(', ');
  });
  const rows = [...groups].map(([what, of]) => [
    what,
    ...columns.map(([name, { unit }]) =>
      shownSpread(of.filter(({ figures }) => name in figures).map(({ figures }) => figures[name]! / unit)),
    ),
  ]);
  return table(['', ...columns.map(([, { head }]) => head)], rows);
}
