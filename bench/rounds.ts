import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { hasWrk } from '../test/harness/load.ts';
import { median } from '../test/harness/statistics.ts';
import { FilledPostgres } from './filled-postgres.ts';
import { describeMachine, processorTicks } from './machine.ts';
import { installPeers } from './peer-packages.ts';
import { writePlantFile } from './plant-file.ts';
import { prefillStore } from './prefill.ts';
import { type Durations, type Results, ratesByRound } from './results.ts';
import {
  createToken,
  FLOORS,
  NAMES,
  PEERS,
  plantStoreOnCopy,
  plantStoreOnFilledPostgres,
  plantStoreOnPostgres,
  plantStoreOnSqlite,
  type Subject,
} from './subjects.ts';
import { inNewFolder, type Plan, runImport, runOpenLoopTrial, runTrial } from './trial.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const CONNECTIONS = [64, 256, 1];
const STORED_ROWS = 10_000_000;
const IMPORT_ROWS = 152_153;
const FIXED_RATE_CONNECTIONS = 64;
/** Of the rate held in a closed loop; beyond it any server's queue grows without end. */
const FIXED_RATE_SHARE = 0.5;

export interface BenchmarkSettings extends Durations {
  rounds: number;
  /** Only what has one of these in its name; all, when empty. */
  only: string[];
  /** Also a store of 10 million plants. */
  withManyStored: boolean;
  importFile: string | undefined;
  signal: AbortSignal;
}

/** A piece of a round. */
interface Step {
  name: string;
  run(round: number): Promise<void>;
}

/**
 * Runs all subjects in all rounds, every other round in the opposite order. What fails is named in the results, and
 * the rest goes on.
 *
 * @throws when it is interrupted, or nothing can be measured at all
 */
export async function runBenchmark(settings: BenchmarkSettings): Promise<Results> {
  return await inNewFolder(async folder => {
    await using filledPostgres = new FilledPostgres(STORED_ROWS, createToken);
    const failures: Results['failures'] = [];
    const plans = plansOf(settings, folder, filledPostgres);
    if (!hasWrk() || plans.some(({ subject }) => PEERS.includes(subject))) {
      await installPeers().catch(error =>
        failures.push({ name: 'peers', reason: withoutPaths((error as Error).message) }),
      );
    }
    const results: Results = {
      date: new Date().toISOString(),
      machine: describeMachine(tmpdir()),
      settings: {
        rounds: settings.rounds,
        warmUpSeconds: settings.warmUpSeconds,
        seconds: settings.seconds,
        importFile: settings.importFile === undefined ? 'made-up plants' : basename(settings.importFile),
      },
      stolenShare: undefined,
      ...{ trials: [], failures, fsyncs: [], batchInserts: [], imports: [], openLoops: [] },
    };
    const steps = stepsOf(plans, results, settings, folder);
    if (steps.length === 0) throw new Error(`nothing has ${settings.only.join(' or ')} in its name`);
    const before = processorTicks();
    await runRounds('closed loop', steps, results, settings);
    await runRounds('fixed rate', openLoopSteps(plans, results, settings), results, settings);
    const after = processorTicks();
    if (before !== undefined && after !== undefined) {
      results.stolenShare = (after.stolen - before.stolen) / (after.all - before.all);
    }
    return results;
  });
}

function plansOf(
  { only, withManyStored }: BenchmarkSettings,
  folder: string,
  filledPostgres: FilledPostgres,
): Plan[] {
  const original = join(folder, 'stored.db');
  let isFilled = false;
  const filled = () => {
    if (!isFilled) {
      console.error(`  storing ${STORED_ROWS} plants`);
      prefillStore(original, STORED_ROWS);
      isFilled = true;
    }
    return original;
  };
  // What is compared runs soon after each other.
  const subjects = [...PEERS, ...FLOORS, plantStoreOnSqlite(), plantStoreOnPostgres()];
  const plans = subjects.map(subject => plan(subject, 'ascending', 0));
  plans.push(plan({ ...plantStoreOnSqlite(), name: NAMES.sqliteRandom }, 'random', 0));
  if (withManyStored) {
    const { storedAscending, storedRandom, postgresStoredAscending, postgresStoredRandom } = NAMES;
    const onFilled = (name: string) => plantStoreOnFilledPostgres(name, filledPostgres);
    plans.push(plan(plantStoreOnCopy(storedAscending, filled), 'ascending', STORED_ROWS));
    plans.push(plan(plantStoreOnCopy(storedRandom, filled), 'random', STORED_ROWS));
    plans.push(plan(onFilled(postgresStoredAscending), 'ascending', STORED_ROWS));
    plans.push(plan(onFilled(postgresStoredRandom), 'random', STORED_ROWS));
  }
  return plans.filter(({ subject }) => isChosen(subject.name, only));
}

function plan(subject: Subject, ids: Plan['ids'], storedPlants: number): Plan {
  return { subject, ids, storedPlants, connections: CONNECTIONS };
}

function isChosen(name: string, only: string[]): boolean {
  return only.length === 0 || only.some(text => name.toLowerCase().includes(text.toLowerCase()));
}

function stepsOf(plans: Plan[], results: Results, settings: BenchmarkSettings, folder: string): Step[] {
  const { warmUpSeconds, seconds, only, signal } = settings;
  const importFile = settings.importFile ?? join(folder, 'plants.csv');
  if (settings.importFile === undefined) writePlantFile(importFile, IMPORT_ROWS);
  const others: Step[] = [
    {
      name: 'flush loop',
      run: async round => {
        const flushes = await runFloor<Results['fsyncs'][number]>('./floors/fsync-loop.ts', seconds);
        results.fsyncs.push({ round, ...flushes });
      },
    },
    {
      name: 'node:sqlite batch inserts',
      run: async round => {
        const rows = await runFloor<Results['batchInserts'][number]>('./floors/batch-inserts.ts', seconds);
        results.batchInserts.push({ round, ...rows });
      },
    },
    {
      name: 'import',
      run: async round => {
        results.imports.push(await runImport(importFile, csvRows(importFile), round, warmUpSeconds));
      },
    },
  ];
  const steps: Step[] = plans.map(plan => ({
    name: plan.subject.name,
    run: async round => {
      results.trials.push(await runTrial(plan, round, settings, signal));
    },
  }));
  // Beside what they are compared with.
  const index = steps.findIndex(({ name }) => name === NAMES.sqlite);
  return steps.toSpliced(index + 1, 0, ...others.filter(({ name }) => isChosen(name, only)));
}

/** The plant store, the peer that was fastest, whichever its durability, and a floor that shows what the client costs. */
function openLoopSteps(
  plans: Plan[],
  results: Results,
  { warmUpSeconds, seconds }: BenchmarkSettings,
): Step[] {
  const heldRate = ({ subject }: Plan) =>
    median([...ratesByRound(results.trials, subject.name, FIXED_RATE_CONNECTIONS).values()]);
  const measured = plans.filter(plan => heldRate(plan) > 0);
  const peers = measured.filter(({ subject }) => PEERS.includes(subject));
  const fastestPeer = peers.sort((a, b) => heldRate(b) - heldRate(a)).slice(0, 1);
  const ours = measured.filter(({ subject }) => subject.kind === 'plant store');
  const floor = measured.filter(({ subject }) => subject.name === NAMES.fastifyEcho);
  return [...floor, ...fastestPeer, ...ours].map(plan => ({
    name: plan.subject.name,
    run: async round => {
      const ratePerSecond = heldRate(plan) * FIXED_RATE_SHARE;
      const load = { warmUpSeconds, seconds, connections: FIXED_RATE_CONNECTIONS, ratePerSecond };
      results.openLoops.push(await runOpenLoopTrial(plan, round, load));
    },
  }));
}

async function runRounds(
  what: string,
  steps: Step[],
  { failures }: Results,
  { rounds, signal }: BenchmarkSettings,
): Promise<void> {
  const sinceMs = performance.now();
  let done = 0;
  for (let round = 1; round <= rounds; round++) {
    for (const step of round % 2 === 1 ? [...steps] : steps.toReversed()) {
      const left = done === 0 ? '' : `, ${timeLeft(sinceMs, done, rounds * steps.length)}`;
      console.error(`${what}, round ${round} of ${rounds}${left}: ${step.name}`);
      // What one step left for the disk is not for the next to wait for.
      spawnSync('sync');
      try {
        await step.run(round);
      } catch (error) {
        signal.throwIfAborted();
        console.error(`  failed: ${(error as Error).message}`);
        failures.push({ name: `${step.name}, ${what}`, reason: withoutPaths((error as Error).message) });
      }
      signal.throwIfAborted();
      done++;
    }
  }
}

/** Results are for readers who do not have this machine. */
function withoutPaths(text: string): string {
  return text.replaceAll(ROOT, '');
}

function timeLeft(sinceMs: number, done: number, all: number): string {
  const leftMs = ((performance.now() - sinceMs) / done) * (all - done);
  return `about ${Math.ceil(leftMs / 60_000)} min left`;
}

/** Runs a program that measures something without a server, and prints it as JSON. */
async function runFloor<Result extends { round: number }>(
  script: string,
  seconds: number,
): Promise<Omit<Result, 'round'>> {
  return await inNewFolder(async folder => {
    const args = [fileURLToPath(new URL(script, import.meta.url)), folder, String(seconds)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    return JSON.parse(await readText(child.stdout));
  });
}

/** Lines behind the first; a line break within quotes would count as two. */
function csvRows(file: string): number {
  const packed = readFileSync(file);
  const lines = (file.endsWith('.gz') ? gunzipSync(packed) : packed).toString().trimEnd().split('\n');
  return lines.length - 1;
}
