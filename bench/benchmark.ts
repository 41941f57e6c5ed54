/**
 * Measures the plant store against floors and peers; `--help` says how. Progress goes to stderr, the tables to stdout
 * and, with the raw figures, into files.
 *
 *   npm run bench -- --quick
 */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { interruption } from '../test/harness/interruption.ts';
import { reportOf } from './report.ts';
import { type BenchmarkSettings, runBenchmark } from './rounds.ts';

const HELP = `Usage: npm run bench -- [options]

Measures durable creates of the plant store against floors and peers, and prints
the figures with the bars they are to reach. Everything runs on this machine;
nothing else should.

  --rounds COUNT       each subject runs once in each round (default: 5)
  --seconds COUNT      of each load (default: 4)
  --only TEXT          only what has this in its name; may be given several times
  --quick              2 rounds of 2 seconds, and nothing with 10 million stored
  --import-file FILE   a CSV file to import (default: 152,153 made-up plants)
  --folder FOLDER      where the stores are (default: ${tmpdir()})
  --out FOLDER         where results.md and results.json go (default: bench; with
                       --quick or --only a temporary folder)
`;

const OUT = fileURLToPath(new URL('.', import.meta.url));

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    only: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
    'import-file': { type: 'string' },
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
  const { only = [], quick, 'import-file': importFile } = values;
  // What is measured in part must not replace what was measured whole.
  const isPart = quick || only.length > 0;
  // All temporary folders follow, those of PostgreSQL too.
  process.env.TMPDIR = resolve(values.folder);
  const signal = interruption('stopping the servers');
  const settings: BenchmarkSettings = {
    rounds: count('rounds', values.rounds ?? (quick ? '2' : '5')),
    warmUpSeconds: quick ? 3 : 5,
    seconds: count('seconds', values.seconds ?? (quick ? '2' : '4')),
    only,
    withManyStored: !quick,
    importFile: importFile === undefined ? undefined : resolve(importFile),
    signal,
  };
  try {
    const results = await runBenchmark(settings);
    const report = reportOf(results);
    const out = values.out ?? (isPart ? mkdtempSync(join(tmpdir(), 'plant-store-results-')) : OUT);
    mkdirSync(out, { recursive: true });
    writeFileSync(join(out, 'results.json'), `${JSON.stringify(results, null, 1)}\n`);
    writeFileSync(join(out, 'results.md'), report);
    process.stdout.write(report);
    console.error(`written to ${out}`);
  } catch (error) {
    if (!signal.aborted) throw error;
    process.exitCode = 130;
  }
}

function count(option: string, text: string): number {
  if (/^[1-9][0-9]{0,3}$/.test(text)) return Number(text);
  throw new Error(`--${option} takes a whole number from 1, not ${JSON.stringify(text)}`);
}
