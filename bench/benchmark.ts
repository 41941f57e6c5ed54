/**
 * Measures the plant store against floors and peers, or against another checkout; `--help` lists
 * the options. Progress goes to stderr. The tables go to stdout and, with all measurements, into
 * files.
 *
 *   npm run bench -- --quick
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installPackages } from '../test/harness/install-packages.ts';
import { interruption } from '../test/harness/interruption.ts';
import { compareCheckouts } from './checkouts.ts';
import type { Measurement } from './measurements.ts';
import { PARTS, STORED_PLANTS } from './parts.ts';
import { CHARTS, updateReport } from './report.ts';
import { runPart } from './rounds.ts';
import { rowTable } from './rows.ts';
import type { Durations } from './trial.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const PICTURES = fileURLToPath(new URL('../docs/growth', import.meta.url));
const PLOTS = fileURLToPath(new URL('./plots.js', import.meta.url));
/** Takes as long as all other parts together. */
const NOT_BY_DEFAULT = 'stored';

const HELP = `Usage: npm run bench -- [options]

Compares durable creates of the plant store with floors and peers, and prints
the results with their bars. All programs run on this machine, so nothing else
should. It needs Linux and wrk.

  --only PART       runs only this part; can be repeated (default: all except
                    ${NOT_BY_DEFAULT}):
${Object.entries(PARTS)
  .map(([name, { summary }]) => `                      ${name.padEnd(12)} ${summary}\n`)
  .join('')}\
  --rounds COUNT    each step of a part runs once in each round (default: 5)
  --seconds COUNT   duration of each load (default: 4)
  --quick           one round of short loads, with at most 100,000 stored plants
  --citus URL       also measures this empty database on a Citus coordinator
  --folder FOLDER   folder for the stores (default: ${tmpdir()})
  --out FOLDER      folder for results.json, results.md and the pictures (default:
                    bench and docs/growth; with --quick a temporary folder)
  --draw            only draws the pictures again

  --against FOLDER  only compares creates of this checkout with those of the
                    checkout in FOLDER (default: 6 rounds)
`;

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    citus: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    out: { type: 'string' },
    draw: { type: 'boolean', default: false },
    against: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) {
  process.stdout.write(HELP);
} else {
  // All temporary folders are created there, also those of PostgreSQL.
  process.env.TMPDIR = resolve(values.folder);
  const signal = interruption('stopping the servers');
  try {
    await main(signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    process.exitCode = 130;
  }
}

async function main(signal: AbortSignal): Promise<void> {
  const { quick, against, draw } = values;
  const durations: Durations = {
    rounds: count('rounds', values.rounds ?? (quick ? '1' : against === undefined ? '5' : '6')),
    warmUpSeconds: quick ? 1 : 5,
    seconds: count('seconds', values.seconds ?? (quick ? '1' : '4')),
    signal,
  };
  if (against !== undefined) {
    console.log(rowTable(await compareCheckouts(against, durations)));
    return;
  }
  const names = values.only ?? Object.keys(PARTS).filter(name => name !== NOT_BY_DEFAULT);
  const unknown = names.find(name => PARTS[name] === undefined);
  if (unknown !== undefined) throw new Error(`there is no part ${unknown}; --help lists them`);
  installPackages(FOLDER);
  const out = values.out ?? (quick ? mkdtempSync(join(tmpdir(), 'plant-store-results-')) : FOLDER);
  mkdirSync(out, { recursive: true });
  const setting = {
    durations,
    citusUrl: values.citus,
    storedMax: quick ? 100_000 : STORED_PLANTS.at(-1)!,
  };
  const reportFile = join(out, 'results.md');
  const chartFile = join(out, 'results.json');
  for (const name of draw ? [] : names) {
    const results = await runPart(name, setting);
    writeFileSync(reportFile, updateReport(textOf(reportFile, ''), name, results));
    writeFileSync(chartFile, updateCharts(textOf(chartFile, '{}'), name, results.measurements));
  }
  execFileSync(process.execPath, [PLOTS, chartFile, out === FOLDER ? PICTURES : out]);
  process.stdout.write(textOf(reportFile, ''));
  console.error(`written to ${out}`);
}

/** @returns the text of a file, or `initial` if there is none */
function textOf(file: string, initial: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : initial;
}

/** What plots.js draws. */
function updateCharts(charts: string, name: string, measurements: readonly Measurement[]): string {
  const metrics = CHARTS[name];
  if (metrics === undefined) return charts;
  const drawn = measurements.map(({ round: _, figures, ...place }) => ({
    ...place,
    figures: Object.fromEntries(
      metrics.filter(each => each in figures).map(each => [each, Math.round(figures[each]!)]),
    ),
  }));
  return `${JSON.stringify({ ...JSON.parse(charts), [name]: drawn }, null, 1)}\n`;
}

function count(option: string, text: string): number {
  if (/^[1-9][0-9]{0,3}$/.test(text)) return Number(text);
  throw new Error(`--${option} must be an integer from 1 to 9999, not ${JSON.stringify(text)}`);
}
