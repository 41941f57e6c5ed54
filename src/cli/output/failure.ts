/**
 * A command failed for a reason that its user can act on. The message is one line for stderr and
 * says what to do next. The process ends with the exit code.
 */
export class Failure extends Error {
  /** 1: failure; 2: usage error. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.name = 'Failure';
    this.exitCode = exitCode;
  }
}
