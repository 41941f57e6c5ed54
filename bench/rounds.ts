import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describeMachine, type Machine, processorTicks } from './machine.ts';
import type { Measurement } from './measurements.ts';
import { PARTS, type Setting, type Step } from './parts.ts';
import { newFolder } from './trial.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** Of parts whose figures do not need as many as the others. */
const ROUNDS_MAX: Record<string, number> = { stored: 3, faults: 1, install: 1 };

/** What a run of a part measured, and under which circumstances. */
export interface PartResults {
  date: string;
  machine: Machine;
  rounds: number;
  warmUpSeconds: number;
  seconds: number;
  /** Of the processors' time while it ran, what other machines on the same hardware had; undefined where nobody says. */
  stolenShare: number | undefined;
  measurements: Measurement[];
  /** What could not be measured, and why. */
  failures: string[];
}

/**
 * Runs the steps of a part in rounds, every other round in the opposite order. What fails is named in the results, and the
 * rest goes on.
 *
 * @throws when it is interrupted
 */
export async function runPart(name: string, setting: Omit<Setting, 'folder'>): Promise<PartResults> {
  using folder = newFolder();
  const { signal, warmUpSeconds, seconds, ...durations } = setting.durations;
  const rounds = Math.min(durations.rounds, ROUNDS_MAX[name] ?? Number.POSITIVE_INFINITY);
  const results: PartResults = {
    date: new Date().toISOString(),
    machine: describeMachine(tmpdir()),
    ...{ rounds, warmUpSeconds, seconds, stolenShare: undefined, measurements: [], failures: [] },
  };
  const steps = PARTS[name]!.steps({ ...setting, folder: folder.path });
  const before = processorTicks();
  for (let round = 1; round <= rounds; round++) {
    for (const step of round % 2 === 1 ? steps : steps.toReversed()) {
      console.error(`${name}, round ${round} of ${rounds}: ${step.name}`);
      // What one step left for the disk is not for the next to wait for.
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
    // Results are for readers who do not have this machine.
    const reason = (error as Error).message.replaceAll(ROOT, '').replaceAll(/\s+/g, ' ').trim();
    console.error(`  failed: ${reason}`);
    results.failures.push(`${step.name}: ${reason}`);
  }
  signal.throwIfAborted();
}
