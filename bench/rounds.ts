import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describeMachine, processorTicks } from './machine.ts';
import type { Measurement } from './measurements.ts';
import { PARTS, type Setting, type Step } from './parts.ts';
import { newFolder } from './trial.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** Parts that need fewer rounds than the others. */
const ROUNDS_MAX: Record<string, number> = { stored: 3, faults: 1, install: 1 };

/** The results of a run of a part, with date, machine and settings. */
export interface PartResults {
  date: string;
  machine: string;
  rounds: number;
  warmUpSeconds: number;
  seconds: number;
  /** The share of CPU time that other virtual machines used; undefined if unknown. */
  stolenShare: number | undefined;
  measurements: Measurement[];
  /** One line for each failed step, with the reason. */
  failures: string[];
}

/**
 * Runs the steps of a part in rounds, every second round in the opposite order. The results list
 * failed steps, and the other steps continue.
 *
 * @throws if it is interrupted
 */
export async function runPart(name: string, setting: Omit<Setting, 'folder'>): Promise<PartResults> {
  using folder = newFolder();
  const { signal, warmUpSeconds, seconds, ...durations } = setting.durations;
  const rounds = Math.min(durations.rounds, ROUNDS_MAX[name] ?? Number.POSITIVE_INFINITY);
  const results: PartResults = {
    date: new Date().toISOString(),
    machine: describeMachine(tmpdir()),
    rounds,
    warmUpSeconds,
    seconds,
    stolenShare: undefined,
    measurements: [],
    failures: [],
  };
  const steps = PARTS[name]!.steps({ ...setting, folder: folder.path });
  const before = processorTicks();
  for (let round = 1; round <= rounds; round++) {
    for (const step of round % 2 === 1 ? steps : steps.toReversed()) {
      console.error(`${name}, round ${round} of ${rounds}: ${step.name}`);
      // Flushes the data of the last step, which would slow down the next one.
      spawnSync('sync');
      await runStep(step, round, results, signal);
    }
  }
  const after = processorTicks();
  if (before !== undefined && after !== undefined) {
    results.stolenShare = (after.stolen - before.stolen) / (after.all - before.all);
  }
  return results;
}

async function runStep(step: Step, round: number, results: PartResults, signal: AbortSignal): Promise<void> {
  try {
    results.measurements.push(...(await step.run(round)));
  } catch (error) {
    signal.throwIfAborted();
    // Results must not contain paths of this machine.
    const reason = (error as Error).message.replaceAll(ROOT, '').replaceAll(/\s+/g, ' ').trim();
    console.error(`  failed: ${reason}`);
    results.failures.push(`${step.name}: ${reason}`);
  }
  signal.throwIfAborted();
}
