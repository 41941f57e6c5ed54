import { median, type Spread, spread } from '../test/harness/statistics.ts';
import { type Bar, barsOf, isReached } from './bars.ts';
import { type Drive, driveAt, type OpenLoop, type Results, type Trial } from './results.ts';

const MIB = 2 ** 20;

/** The results as Markdown, for a file and for the terminal alike. */
export function reportOf(results: Results): string {
  const { trials, openLoops, failures } = results;
  const sections = [
    '# Benchmark',
    'Made by `npm run bench`. Each figure is the median over the rounds, with the least and the greatest in brackets; a round runs each subject once, in a process of its own, and every other round in the opposite order. Server, database and load share the machine.',
    machineTable(results),
    '## Closed loop',
    'Each connection sends its next plant as soon as the last one is answered.',
    driveTable(trials),
    '## Start, memory, disk',
    'Start is from the start of the process to its first answer 200. Memory is the most that the process held, under all its loads. Bytes are those of all files of the store after a stop.',
    subjectTable(trials),
    ...notesOf(trials),
    '## Floors and import',
    otherTable(results),
    ...(openLoops.length > 0
      ? [
          '## Fixed rate',
          'Plants are sent at their times whether or not earlier ones were answered, at half of the rate that the subject held above, and latency counts from the time a plant was due.',
          openLoopTable(openLoops),
        ]
      : []),
    '## Bars',
    'A ratio is the median over the rounds of the ratio within a round.',
    barTable(barsOf(results)),
    ...(failures.length > 0 ? ['## Not measured', failureList(failures)] : []),
  ];
  return `${sections.join('\n\n')}\n`;
}

/** Each once, however many rounds it failed in. */
function failureList(failures: Results['failures']): string {
  return [...new Set(failures.map(({ name, reason }) => `- ${name}: ${oneLine(reason)}`))].join('\n');
}

function machineTable({ date, machine, settings, stolenShare, fsyncs }: Results): string {
  const flush = spread(fsyncs.map(each => each.medianUs));
  return table(
    ['What', 'Value'],
    [
      ['date', date],
      ['processor', machine.cpu],
      ['memory', `${(machine.memoryBytes / 2 ** 30).toFixed(1)} GiB`],
      ['kernel', machine.kernel],
      ['file system of the stores', machine.fileSystem],
      ['one flush of it (4 KiB of a file, fsync)', `${shown(flush, us => (us / 1000).toFixed(2))} ms`],
      [
        'rounds',
        `${settings.rounds}, ${settings.seconds} s for each load, ${settings.warmUpSeconds} s of load before the first`,
      ],
      [
        'processor time that other machines took (steal)',
        stolenShare === undefined ? '-' : `${(stolenShare * 100).toFixed(1)} %`,
      ],
      ...Object.entries(machine.versions),
    ],
  );
}

function driveTable(trials: readonly Trial[]): string {
  const columns = ['Subject', 'Connections', 'Creates/s', 'p50 ms', 'p99 ms', 'p99.9 ms', 'CPU µs', 'Failed'];
  const rows = bySubject(trials).flatMap(([subject, ofSubject]) =>
    connectionsOf(ofSubject).map(connections => {
      const drives = ofSubject.map(trial => driveAt(trial, connections)).filter(each => each !== undefined);
      const figure = (of: (drive: Drive) => number, write: (value: number) => string) =>
        shown(spread(drives.map(of)), write);
      return [
        subject,
        String(connections),
        figure(drive => drive.ratePerSecond, whole),
        figure(drive => drive.p50Us, milliseconds),
        figure(drive => drive.p99Us, milliseconds),
        figure(drive => drive.p999Us, milliseconds),
        figure(drive => drive.cpuUs, tenths),
        String(drives.reduce((sum, drive) => sum + drive.failures, 0)),
      ];
    }),
  );
  return table(columns, rows);
}

function subjectTable(trials: readonly Trial[]): string {
  const rows = bySubject(trials).map(([subject, ofSubject]) => [
    subject,
    shown(spread(ofSubject.map(trial => trial.startMs)), whole),
    shown(spread(ofSubject.map(trial => trial.residentPeakBytes / MIB)), whole),
    shown(spread(ofSubject.map(trial => trial.bytesPerPlant).filter(each => each !== undefined)), whole),
  ]);
  return table(['Subject', 'Start ms', 'Memory MiB', 'Bytes per plant'], rows);
}

/** What a reader must know beside the figures, and what PostgreSQL itself took. */
function notesOf(trials: readonly Trial[]): string[] {
  const notes = bySubject(trials).flatMap(([subject, [first]]) =>
    first?.note === undefined ? [] : [`- ${subject}: ${first.note}`],
  );
  for (const [subject, ofSubject] of bySubject(trials)) {
    for (const connections of [64, 256]) {
      const drives = ofSubject.map(trial => driveAt(trial, connections)).filter(each => each !== undefined);
      const ofDatabase = drives.filter(each => each.databaseCpuUs !== undefined);
      if (ofDatabase.length === 0) continue;
      const cpu = shown(spread(ofDatabase.map(each => each.databaseCpuUs!)), tenths);
      const log = shown(spread(ofDatabase.map(each => each.databaseLogBytes!)), whole);
      notes.push(
        `- ${subject}, ${connections} connections: ${cpu} µs of CPU of the database server and ${log} bytes of its write-ahead log for each plant`,
      );
    }
  }
  return notes.length === 0 ? [] : [notes.join('\n')];
}

function otherTable({ settings, fsyncs, batchInserts, imports }: Results): string {
  return table(
    ['What', 'A second'],
    [
      ['flushes of 4 KiB', shown(spread(fsyncs.map(each => each.perSecond)), whole)],
      [
        'rows by node:sqlite alone, 64 for each flushed commit',
        shown(spread(batchInserts.map(each => each.rowsPerSecond)), whole),
      ],
      [
        `plants by \`plant-store import\`, ${imports[0]?.rows ?? 0} rows of ${settings.importFile}, start of the command included`,
        shown(spread(imports.map(each => each.rowsPerSecond)), whole),
      ],
    ],
  );
}

function openLoopTable(openLoops: readonly OpenLoop[]): string {
  const columns = ['Subject', 'Connections', 'Due/s', 'p50 ms', 'p99 ms', 'p99.9 ms', 'Failed', 'Unanswered'];
  const rows = bySubject(openLoops).map(([subject, runs]) => [
    subject,
    String(runs[0]!.connections),
    whole(median(runs.map(run => run.dueRatePerSecond))),
    shown(spread(runs.map(run => run.p50Us)), milliseconds),
    shown(spread(runs.map(run => run.p99Us)), milliseconds),
    shown(spread(runs.map(run => run.p999Us)), milliseconds),
    String(runs.reduce((sum, run) => sum + run.failures, 0)),
    String(runs.reduce((sum, run) => sum + run.unanswered, 0)),
  ]);
  return table(columns, rows);
}

function barTable(bars: readonly Bar[]): string {
  const rows = bars.map(bar => {
    const { what, direction, required, reached, unit = '' } = bar;
    const verdict = isReached(bar);
    return [
      what,
      `${direction} ${required} ${unit}`.trim(),
      reached === undefined ? 'not measured' : `${reached.toFixed(2)} ${unit}`.trim(),
      verdict === undefined ? '' : verdict ? 'yes' : 'no',
    ];
  });
  return table(['What', 'Required', 'Reached', 'Held'], rows);
}

/** In the order of the kinds, and within a kind as they first ran. */
function bySubject<Measured extends { subject: string; kind?: Trial['kind'] }>(
  measured: readonly Measured[],
): [string, Measured[]][] {
  const kinds = ['floor', 'durable peer', 'weaker peer', 'plant store'];
  const subjects = Map.groupBy(measured, each => each.subject);
  const rank = ([, [first]]: [string, Measured[]]) => kinds.indexOf(first!.kind ?? 'floor');
  return [...subjects].sort((a, b) => rank(a) - rank(b));
}

function connectionsOf(trials: readonly Trial[]): number[] {
  const all = trials.flatMap(trial => trial.drives.map(drive => drive.connections));
  return [...new Set(all)].sort((a, b) => a - b);
}

function table(columns: string[], rows: string[][]): string {
  const widths = columns.map((column, index) =>
    Math.max(column.length, ...rows.map(row => row[index]!.length)),
  );
  const line = (cells: string[]) =>
    `| ${cells.map((cell, index) => cell.padEnd(widths[index]!)).join(' | ')} |`;
  return [line(columns), line(widths.map(width => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

function shown(figure: Spread | undefined, format: (value: number) => string): string {
  if (figure === undefined) return '-';
  return `${format(figure.median)} (${format(figure.min)}..${format(figure.max)})`;
}

function whole(value: number): string {
  return value.toFixed(0);
}

function tenths(value: number): string {
  return value.toFixed(1);
}

function milliseconds(us: number): string {
  return (us / 1000).toFixed(us < 10_000 ? 2 : 1);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
