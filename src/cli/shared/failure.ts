/** A failure that the user can act on. The message is one line, and says what to do next. */
export class Failure extends Error {
  /** 1: failure; 2: usage error. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.name = 'Failure';
    this.exitCode = exitCode;
  }
}
