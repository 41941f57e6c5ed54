import { noCounts, simulateGroupCommit } from '../test/harness/group-commit-simulation.ts';
import type { Ordeal } from './ordeal.ts';

const RUNS = 100_000;
const TOLD_EVERY = 10_000;
/** What is wrong with group commit shows in many runs; these are enough to see what it is. */
const FAULTS_MAX = 5;

export const simulation: Ordeal = {
  name: 'simulation',
  summary: `group commit with its clock, engine and callers drawn from ${RUNS} seeds, one after the other`,
  finds: [],
  async run({ seed, budgetMs, signal, tell }) {
    const counts = noCounts();
    const faults: string[] = [];
    const untilMs = performance.now() + budgetMs;
    let runs = 0;
    while (runs < RUNS && faults.length < FAULTS_MAX && performance.now() < untilMs && !signal.aborted) {
      await simulateGroupCommit(seed + runs, counts).catch((fault: Error) => faults.push(fault.message));
      if (++runs % TOLD_EVERY === 0) tell(`${runs} seeds`);
    }
    return { faults, figures: { seeds: runs, ...counts } };
  },
};
