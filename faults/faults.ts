/**
 * Injects faults into the service; `--help` lists the options.
 *
 *   npm run faults -- --minutes 30
 */
import { parseArgs } from 'node:util';
import { interruption } from '../test/harness/interruption.ts';
import { bitFlips } from './bit-flips.ts';
import { citusFaults } from './citus.ts';
import { failingCalls } from './failing-calls.ts';
import { floods } from './floods.ts';
import { fuzzing } from './fuzz.ts';
import { httpParsers } from './http-parsers.ts';
import { kills } from './kills.ts';
import { postgresCuts } from './postgres-cuts.ts';
import { postgresFailover } from './postgres-failover.ts';
import { postgresKills } from './postgres-kills.ts';
import { postgresPartition } from './postgres-partition.ts';
import { powerCut } from './power-cut.ts';
import { MUTANTS, type Order, obstacleOf, type Scenario } from './scenario.ts';
import { slowClients } from './slow-clients.ts';
import { soak } from './soak.ts';

const SCENARIOS: readonly Scenario[] = [
  ...[kills, powerCut, failingCalls, bitFlips],
  ...[postgresKills, postgresFailover, postgresCuts, postgresPartition],
  ...[floods, slowClients, soak, fuzzing, httpParsers],
];

const HELP = `Usage: npm run faults -- [options]

Injects faults into the service, and compares the responses that clients
received with the stored plants.

  --minutes N      total time, divided equally among the scenarios (default: 10)
  --seed N         repeats the faults of an earlier run (default: from the time)
  --only NAME      runs only this scenario; can be repeated
  --mutant NAME    breaks the service on purpose: ${MUTANTS.slice(0, -1).join(', ')}
                   or ${MUTANTS.at(-1)}.
                   Each scenario that covers this mutant must then find faults
  --citus URL      runs only the scenario for Citus, on the cluster with this
                   coordinator; its servers run on this machine, and the user
                   in URL is a superuser
  --list           lists the scenarios, and why one cannot run on this machine

Exit codes: 0 no faults, 1 faults or an error, 130 interrupted.
`;

/** The exit code of a shell for a program that SIGINT ended. */
const INTERRUPTED_EXIT_CODE = 130;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 1000) % 1_000_000) },
    only: { type: 'string', multiple: true },
    mutant: { type: 'string' },
    citus: { type: 'string' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else if (values.list) list();
else await main();

function list(): void {
  for (const scenario of SCENARIOS) {
    const { name, summary, secondsMin } = scenario;
    const obstacle = obstacleOf(scenario);
    console.log(`${name}: ${summary} (${secondsMin} s or more)`);
    if (obstacle !== undefined) console.log(`  CANNOT RUN HERE: ${obstacle}`);
  }
}

async function main(): Promise<void> {
  const minutes = positive('--minutes', values.minutes);
  const seed = positive('--seed', values.seed);
  const mutant = MUTANTS.find(name => name === values.mutant);
  if (values.mutant !== undefined && mutant === undefined)
    throw new Error(`there is no mutant ${values.mutant}; --help lists them`);
  const scenarios = values.citus === undefined ? SCENARIOS : [citusFaults(values.citus)];
  const unknown = values.only?.find(name => !scenarios.some(scenario => scenario.name === name));
  if (unknown !== undefined) throw new Error(`there is no scenario ${unknown}; --list lists them`);
  const chosen = scenarios.filter(
    ({ name, finds }) =>
      (values.only?.includes(name) ?? true) && (mutant === undefined || finds.includes(mutant)),
  );
  const signal = interruption('ending the current scenario');
  console.error(`seed ${seed}; repeat this run with --seed ${seed}`);
  let ran = 0;
  let failed = 0;
  for (const scenario of chosen) {
    if (signal.aborted) break;
    const { name, summary } = scenario;
    const obstacle = obstacleOf(scenario);
    if (obstacle !== undefined) {
      console.error(`\nSKIPPED ${name}: ${obstacle}`);
      continue;
    }
    console.error(`\n${name}: ${summary}`);
    const found = await runAndPrint(scenario, {
      seed,
      mutant,
      budgetMs: (minutes * 60_000) / chosen.length,
      signal,
      tell: line => console.error(`  ${line}`),
    });
    if (signal.aborted) break;
    ran++;
    if (found === undefined || found > 0 !== (mutant !== undefined)) failed++;
  }
  console.log(
    `\n${ran} ran, ${failed} failed, ${chosen.length - ran} were skipped or interrupted; seed ${seed}` +
      (mutant === undefined ? '' : `; mutant ${mutant}: each scenario must find faults`),
  );
  if (signal.aborted) process.exitCode = INTERRUPTED_EXIT_CODE;
  else if (failed > 0 || ran === 0) process.exitCode = 1;
}

/**
 * Runs a scenario. If it throws, the others still run.
 *
 * @returns the number of faults; undefined if the scenario itself failed or was interrupted
 */
async function runAndPrint({ name, run }: Scenario, order: Order): Promise<number | undefined> {
  const sinceMs = performance.now();
  try {
    const { late = [], measurements, ...result } = await run(order);
    const faults = order.mutant === undefined ? [...result.faults, ...late] : result.faults;
    const seconds = ((performance.now() - sinceMs) / 1000).toFixed(0);
    const ending = order.signal.aborted ? 'interrupted, ' : '';
    console.log(`${name}: ${ending}${faults.length} faults in ${seconds} s`);
    for (const [what, value] of Object.entries(measurements)) console.log(`  ${what}: ${value}`);
    for (const fault of faults.slice(0, 20)) console.log(`  FAULT ${fault}`);
    return faults.length;
  } catch (error) {
    // Some scenarios throw when they are interrupted.
    if (order.signal.aborted) console.log(`${name}: interrupted`);
    else console.error(`ERROR in ${name}:`, error);
    return undefined;
  }
}

function positive(option: string, text: string): number {
  const value = Number(text);
  if (value > 0) return value;
  throw new Error(`${option} must be a number above 0, not ${text}`);
}
