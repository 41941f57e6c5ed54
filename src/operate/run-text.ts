import type { CommandRun } from '../engines/tables/command-runs.ts';

/** The start of the last message of a command that found faults. */
export const FAULTS_FOUND = 'FAULTS FOUND: ';

/** The result of a run, as an operator reads it. */
export function runText({ hasSucceeded, result }: CommandRun): string {
  return hasSucceeded ? result : `${FAULTS_FOUND}${result}`;
}
