/**
 * A command cannot do what was asked. The message is one line for a person and says what to do next; it goes to
 * stderr, and the process ends with the exit code.
 */
export class Failure extends Error {
  /** 1: could not be done; 2: was asked for wrongly. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.name = 'Failure';
    this.exitCode = exitCode;
  }
}
