/**
 * Measures how the cost of a plant grows with what there is of it, and draws a plot of each curve; `--help` says how.
 *
 *   npm run bench:growth -- --quick
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { interruption } from '../test/harness/interruption.ts';
import { connections } from './growth/connections.ts';
import { type Curve, type MeasuredPlace, plotOf } from './growth/curve.ts';
import { bodySize, storedPlants, tokens } from './growth/load-curves.ts';
import { checkTable, disksTable } from './growth/model-tables.ts';
import { PrefilledStores } from './growth/prefilled-stores.ts';
import { exportCurve, start } from './growth/whole-store.ts';
import { describeMachine, type Machine } from './machine.ts';
import { plotSvg } from './plot.ts';
import { inNewFolder } from './trial.ts';

const CURVES: readonly Curve[] = [connections, storedPlants, bodySize, tokens, exportCurve, start];
const FULL = { rounds: 3, seconds: 3, plantsMax: 1e7 };
const QUICK = { rounds: 1, seconds: 1, plantsMax: 1e5 };
const DOCUMENT = fileURLToPath(new URL('../docs/performance.md', import.meta.url));

const HELP = `Usage: npm run bench:growth -- [options]

Measures how the cost of a plant grows, and draws a plot of each curve. All of
it takes about 12 minutes and 3 GB of disk. Everything runs on this machine;
nothing else should.

  --only NAME      only this curve; may be given several times:
                   ${CURVES.map(({ name }) => name).join(', ')}
  --quick          one short round up to 100,000 stored, to try it out
  --draw           measure nothing, and draw from the figures that are there
  --folder FOLDER  where the stores are (default: ${tmpdir()})
  --out FOLDER     where growth.json and the plots go (default: bench/growth.json
                   and docs/growth, with the tables of docs/performance.md;
                   with --quick a temporary folder)
`;

/** `growth.json`: curves that were measured at different times keep their own circumstances. */
interface Results {
  curves: Record<string, MeasuredCurve>;
}

interface MeasuredCurve {
  date: string;
  machine: Machine;
  rounds: number;
  seconds: number;
  places: MeasuredPlace[];
}

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
    draw: { type: 'boolean', default: false },
    folder: { type: 'string', default: tmpdir() },
    out: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) {
  process.stdout.write(HELP);
} else {
  await main();
}

async function main(): Promise<void> {
  const { draw, quick, folder } = values;
  const out = values.out ?? (quick ? join(tmpdir(), 'plant-store-growth') : undefined);
  const resultsFile =
    out === undefined ? fileURLToPath(new URL('growth.json', import.meta.url)) : join(out, 'growth.json');
  const plots = out ?? fileURLToPath(new URL('../docs/growth', import.meta.url));
  mkdirSync(plots, { recursive: true });
  if (!draw) {
    // All temporary folders follow.
    process.env.TMPDIR = resolve(folder);
    await measure(chosenCurves(), resultsFile, quick ? QUICK : FULL);
  }
  const results = readResults(resultsFile);
  drawPlots(results, plots);
  printTables(results, out === undefined);
  console.error(`the figures are in ${resultsFile}, the plots in ${plots}`);
}

function chosenCurves(): readonly Curve[] {
  const { only } = values;
  const unknown = only?.find(name => !CURVES.some(curve => curve.name === name));
  if (unknown === undefined) return CURVES.filter(({ name }) => only?.includes(name) ?? true);
  throw new Error(`there is no curve ${unknown}; --help names them`);
}

async function measure(curves: readonly Curve[], resultsFile: string, settings: typeof FULL): Promise<void> {
  const signal = interruption('stopping; the curves measured so far are kept');
  try {
    await inNewFolder(folder => measureEach(curves, resultsFile, settings, folder, signal));
  } catch (error) {
    if (!signal.aborted) throw error;
    process.exitCode = 130;
  }
}

async function measureEach(
  curves: readonly Curve[],
  resultsFile: string,
  settings: typeof FULL,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const machine = describeMachine(folder);
  const stores = new PrefilledStores(folder);
  for (const curve of curves) {
    const report = (doing: string): void =>
      console.error(`${new Date().toLocaleTimeString('en-GB')} ${curve.name}: ${doing}`);
    const date = new Date().toISOString();
    const places = await curve.measure({ ...settings, stores, signal, report });
    const { rounds, seconds } = settings;
    const results = readResults(resultsFile);
    results.curves[curve.name] = { date, machine, rounds, seconds, places };
    writeFileSync(resultsFile, `${JSON.stringify(results, null, 1)}\n`);
  }
}

function readResults(file: string): Results {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { curves: {} };
}

function drawPlots({ curves }: Results, folder: string): void {
  for (const curve of CURVES) {
    const measured = curves[curve.name];
    if (measured === undefined) continue;
    writeFileSync(join(folder, `${curve.name}.svg`), plotSvg(plotOf(curve, measured.places)));
  }
}

/** @param inDocument also brings the tables of docs/performance.md up to date */
function printTables({ curves }: Results, inDocument: boolean): void {
  const { places } = curves[connections.name] ?? {};
  if (places === undefined) return;
  for (const [name, table] of [
    ['check of the model', checkTable(places)],
    ['other disks', disksTable(places)],
    ['circumstances', circumstancesTable(curves)],
  ] as const) {
    console.log(`${name}\n\n${table}\n`);
    if (inDocument) writeFileSync(DOCUMENT, withTable(readFileSync(DOCUMENT, 'utf8'), name, table));
  }
}

/** Curves that were measured on one machine in one run have the same line but for the time. */
function circumstancesTable(curves: Results['curves']): string {
  const rows = Object.entries(curves).map(([name, { date, machine, rounds, seconds }]) => {
    const { load, 'Node.js': node } = machine.versions;
    const what = `Node ${node}, ${load}, ${machine.fileSystem.split(' ')[0]}, ${machine.kernel}`;
    return `| ${name} | ${date.slice(0, 16)}Z | ${rounds} of ${seconds} s | ${machine.cpu} | ${what} |`;
  });
  return ['| curve | measured | rounds | machine | with |', '|---|---|---|---|---|', ...rows].join('\n');
}

/** Replaces what is between the two comments with a table's name. */
function withTable(document: string, name: string, table: string): string {
  const [start, end] = [`<!-- ${name}: written by bench/growth.ts -->`, `<!-- end of ${name} -->`];
  const from = document.indexOf(start);
  const to = document.indexOf(end);
  if (from < 0 || to < from)
    throw new Error(`${DOCUMENT} lacks the comments around the table "${name}"; put them back`);
  // Markdown takes what follows a comment without an empty line as part of it.
  return `${document.slice(0, from + start.length)}\n\n${table}\n\n${document.slice(to)}`;
}
