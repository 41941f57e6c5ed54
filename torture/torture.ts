/**
 * Puts the service through what it must survive, for as long as it is told; `--help` says how.
 *
 *   npm run torture -- --minutes 30
 */
import { parseArgs } from 'node:util';
import { interruption } from '../test/harness/interruption.ts';
import { diskLimits } from './disk-limits.ts';
import { failingCalls } from './failing-calls.ts';
import { floodsOrdeal } from './floods.ts';
import { fuzzOrdeal } from './fuzz.ts';
import { guessesOrdeal } from './guesses.ts';
import { kills } from './kills.ts';
import { type Ordeal, type OrdealOrder, type OrdealResult, WEAKNESSES, type Weakness } from './ordeal.ts';
import { overload } from './overload.ts';
import { postgresCuts } from './postgres-cuts.ts';
import { postgresFailover } from './postgres-failover.ts';
import { postgresKills } from './postgres-kills.ts';
import { postgresPartition } from './postgres-partition.ts';
import { powerCut } from './power-cut.ts';
import { rollingRestart } from './rolling-restart.ts';
import { simulation } from './simulation.ts';
import { slowClients } from './slow-clients.ts';
import { soak } from './soak.ts';

const ORDEALS: readonly Ordeal[] = [
  simulation,
  overload,
  slowClients,
  soak,
  rollingRestart,
  fuzzOrdeal,
  guessesOrdeal,
  floodsOrdeal,
  kills,
  powerCut,
  failingCalls,
  diskLimits,
  postgresKills,
  postgresFailover,
  postgresCuts,
  postgresPartition,
];

const HELP = `Usage: npm run torture -- [options]

Puts the service through what it must survive, and compares what clients were
told with what is stored. Ends with 1 when a promise was broken, and with 130
when it was interrupted.

  --minutes N      how long, shared by the ordeals alike (default: 10)
  --seed N         gives the ordeals of an earlier run again (default: the time)
  --only NAME      only this one; may be given several times
  --weakened NAME  breaks a promise on purpose: ${WEAKNESSES.join(' or ')}.
                   Each ordeal that must notice it has to find faults then
  --list           prints the ordeals, and what keeps one from running here
`;

/** What came of an ordeal; `broke` where it failed itself, which says nothing of the service and counts as a failure. */
type Outcome = 'kept' | 'faults' | 'broke' | 'interrupted';

/** As a shell has it for a program that was ended by SIGINT. */
const INTERRUPTED_EXIT_CODE = 130;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 1000) % 1_000_000) },
    only: { type: 'string', multiple: true },
    weakened: { type: 'string' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else if (values.list) list();
else await main();

function list(): void {
  for (const { name, summary, obstacle } of ORDEALS) {
    const reason = obstacle?.();
    console.log(`${name}: ${summary}${reason === undefined ? '' : `\n  CANNOT RUN HERE: ${reason}`}`);
  }
}

async function main(): Promise<void> {
  const minutes = positive('--minutes', values.minutes);
  const seed = positive('--seed', values.seed);
  const weakness = chosenWeakness();
  const chosen = chosenOrdeals(weakness);
  const signal = interruption('ending the ordeal that is under way');
  console.error(`seed ${seed}; give it again with --seed ${seed}`);
  const outcomes: Outcome[] = [];
  for (const ordeal of chosen) {
    if (signal.aborted) break;
    const reason = ordeal.obstacle?.();
    if (reason !== undefined) {
      console.error(`\nSKIPPED ${ordeal.name}: ${reason}`);
      continue;
    }
    console.error(`\n${ordeal.name}: ${ordeal.summary}`);
    const outcome = await outcomeOf(ordeal, {
      ...{ seed, weakness, budgetMs: (minutes * 60_000) / chosen.length, signal },
      tell: line => console.error(`  ${line}`),
    });
    if (outcome !== 'interrupted') outcomes.push(outcome);
  }
  const asked: Outcome = weakness === undefined ? 'kept' : 'faults';
  const failed = outcomes.filter(outcome => outcome !== asked);
  const skipped = chosen.length - outcomes.length;
  console.log(
    `\n${outcomes.length} ran, ${failed.length} failed, ${skipped} did not run to the end; seed ${seed}` +
      (weakness === undefined ? '' : `; weakened: ${weakness}, so finding faults is what is asked for`),
  );
  if (signal.aborted) process.exitCode = INTERRUPTED_EXIT_CODE;
  else if (failed.length > 0 || outcomes.length === 0) process.exitCode = 1;
}

/** Runs an ordeal and prints what came of it; one that throws does not keep the others from running. */
async function outcomeOf(ordeal: Ordeal, order: OrdealOrder): Promise<Outcome> {
  const sinceMs = performance.now();
  try {
    const result = await ordeal.run(order);
    const seconds = (performance.now() - sinceMs) / 1000;
    const isInterrupted = order.signal.aborted;
    print(ordeal, result, seconds, isInterrupted);
    if (isInterrupted) return 'interrupted';
    return result.faults.length > 0 ? 'faults' : 'kept';
  } catch (error) {
    // Some end by it with an error of their own.
    if (order.signal.aborted) {
      console.log(`${ordeal.name}: interrupted`);
      return 'interrupted';
    }
    console.log(`BROKE ${ordeal.name}: ${error instanceof Error ? error.message : error}`);
    console.error(error);
    return 'broke';
  }
}

function print(
  { name }: Ordeal,
  { faults, figures }: OrdealResult,
  seconds: number,
  isInterrupted: boolean,
): void {
  console.log(
    `${name}: ${isInterrupted ? 'interrupted, ' : ''}${faults.length} faults in ${seconds.toFixed(0)} s`,
  );
  for (const [figure, value] of Object.entries(figures)) console.log(`  ${figure}: ${value}`);
  for (const fault of faults.slice(0, 20)) console.log(`  FAULT ${fault}`);
}

function chosenWeakness(): Weakness | undefined {
  const { weakened } = values;
  const weakness = WEAKNESSES.find(name => name === weakened);
  if (weakened !== undefined && weakness === undefined)
    throw new Error(`there is no weakness ${weakened}; --help names them`);
  return weakness;
}

function chosenOrdeals(weakness: Weakness | undefined): readonly Ordeal[] {
  const unknown = values.only?.find(name => !ORDEALS.some(ordeal => ordeal.name === name));
  if (unknown !== undefined) throw new Error(`there is no ordeal ${unknown}; --list names them`);
  return ORDEALS.filter(
    ({ name, finds }) =>
      (values.only?.includes(name) ?? true) && (weakness === undefined || finds.includes(weakness)),
  );
}

function positive(option: string, text: string): number {
  const value = Number(text);
  if (value > 0) return value;
  throw new Error(`${option} must be a number above 0, not ${text}`);
}
