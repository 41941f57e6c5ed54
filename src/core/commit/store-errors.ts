import { type Problem, problemText } from '../problem.ts';

interface StoreErrorOptions extends ErrorOptions {
  advice?: Problem['advice'];
}

/** An error of the store, for operators and users. The message consists of fault and advice. */
export abstract class StoreError extends Error implements Problem {
  // The log shows all properties of an error, and already has both in the message.
  readonly #problem: Problem;

  constructor(fault: string, options: StoreErrorOptions = {}) {
    const problem = { fault, advice: options.advice };
    super(problemText(problem), options);
    this.#problem = problem;
  }

  get fault(): string {
    return this.#problem.fault;
  }

  get advice(): Problem['advice'] {
    return this.#problem.advice;
  }
}

/** An operation of the store failed. The cause goes into the log, never to a client. */
export class StoreUnavailable extends StoreError {
  override name = 'StoreUnavailable';
}

/** A part of the store failed, so only its plants did. The warnings of the engine name this part. */
export class StorePartlyUnavailable extends StoreUnavailable {
  override name = 'StorePartlyUnavailable';
}

/** Our own code failed in an operation of the store. A retry would probably fail in the same way. */
export class StoreInternalError extends StoreError {
  override name = 'StoreInternalError';

  /** @param cause the unexpected error */
  constructor(cause: unknown) {
    super(`unexpected internal error (${(cause as Error).message})`, { advice: 'report it', cause });
  }
}

/** Rows cannot be read, since the files of the store are damaged. */
export class StoreDamaged extends StoreUnavailable {
  override name = 'StoreDamaged';
}

/** The store cannot be opened or used as it is. */
export class StoreRejected extends StoreError {
  override name = 'StoreRejected';
}

/** There is no store at the address. */
export class StoreMissing extends StoreRejected {
  override name = 'StoreMissing';
}
