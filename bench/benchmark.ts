/**
 * Measures the plant store against floors and peers, or against another checkout of itself; `--help` says how. Progress goes
 * to stderr, the tables to stdout and, with the figures of every round, into files.
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
import { PARTS, STORED_PLANTS } from './parts.ts';
import { reportOf } from './report.ts';
import { type PartResults, runPart } from './rounds.ts';
import { rowTable } from './rows.ts';
import type { Durations } from './trial.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const PICTURES = fileURLToPath(new URL('../docs/growth', import.meta.url));
const PLOTS = fileURLToPath(new URL('./plots.js', import.meta.url));
/** Takes as long as all others together. */
const ONLY_WHEN_ASKED = 'stored';

const HELP = `Usage: npm run bench -- [options]

Measures durable creates of the plant store against floors and peers, and prints
the figures with the bars they are to reach. Everything runs on this machine;
nothing else should. It takes Linux, and wrk where that is installed.

  --only PART       only this part; may be given several times (default: all but
                    ${ONLY_WHEN_ASKED}):
${Object.entries(PARTS)
  .map(([name, { summary }]) => `                      ${name.padEnd(12)} ${summary}\n`)
  .join('')}\
  --rounds COUNT    each step of a part runs once in each round (default: 5)
  --seconds COUNT   of each load (default: 4)
  --quick           a round of short loads, and no store over 100,000 plants
  --citus URL       an empty database on a Citus coordinator, to be measured too
  --folder FOLDER   where the stores are (default: ${tmpdir()})
  --out FOLDER      where results.json, results.md and the pictures go (default:
                    bench and docs/growth; with --quick a temporary folder)
  --draw            measure nothing; write the tables and draw the pictures again

  --against FOLDER  measure nothing but creates of this checkout against those of
                    the one in FOLDER (default: 6 rounds)
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
  // All temporary folders follow, those of PostgreSQL too.
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
  const names = values.only ?? Object.keys(PARTS).filter(name => name !== ONLY_WHEN_ASKED);
  const unknown = names.find(name => PARTS[name] === undefined);
  if (unknown !== undefined) throw new Error(`there is no part ${unknown}; --help names them`);
  installPackages(FOLDER);
  const out = values.out ?? (quick ? mkdtempSync(join(tmpdir(), 'plant-store-results-')) : FOLDER);
  mkdirSync(out, { recursive: true });
  const setting = {
    durations,
    citusUrl: values.citus,
    storedMax: quick ? 100_000 : STORED_PLANTS.at(-1)!,
  };
  for (const name of draw ? [] : names) {
    write(out, { ...resultsIn(out), [name]: await runPart(name, setting) });
  }
  const report = reportOf(resultsIn(out));
  writeFileSync(join(out, 'results.md'), report);
  execFileSync(process.execPath, [PLOTS, join(out, 'results.json'), out === FOLDER ? PICTURES : out]);
  process.stdout.write(report);
  console.error(`written to ${out}`);
}

/** Parts that were measured at different times each keep their circumstances. */
function resultsIn(out: string): Record<string, PartResults> {
  const file = join(out, 'results.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}

function write(out: string, results: Record<string, PartResults>): void {
  writeFileSync(join(out, 'results.json'), `${JSON.stringify(results, null, 1)}\n`);
}

function count(option: string, text: string): number {
  if (/^[1-9][0-9]{0,3}$/.test(text)) return Number(text);
  throw new Error(`--${option} takes a whole number from 1, not ${JSON.stringify(text)}`);
}
