/** The result of a command that found faults contains this, before the first one. */
export const FAULTS_FOUND = 'FAULTS FOUND: ';

/** A run of a command that the operator should know of, or damage that was met last. */
export interface CommandRun {
  command: 'backup' | 'verify' | 'damage';
  /** Milliseconds since 1970 UTC. */
  endedAt: number;
  result: string;
}
