/** The last run of a command that the operator should know of. */
export interface CommandRun {
  command: 'backup' | 'verify';
  /** Milliseconds since 1970 UTC. */
  endedAt: number;
  /** Whether it found no fault. */
  hasSucceeded: boolean;
  /** In words, for the operator. It begins with the first fault, if the run found one. */
  result: string;
}
