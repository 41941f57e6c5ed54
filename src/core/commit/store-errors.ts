/** An operation of the store failed. The cause goes into the log, never to a client. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable';
  /** Only the plants of one worker failed. `warnings` reports this, so commits do not log it. */
  isPartial = false;
}

/** Our own code failed in an operation of the store. A retry would probably fail in the same way. */
export class StoreInternalError extends Error {
  override name = 'StoreInternalError';

  /** @param cause the unexpected error */
  constructor(cause: unknown) {
    super(`unexpected internal error (${(cause as Error).message}); report it`, { cause });
  }
}

/** Rows cannot be read, since the files of the store are damaged. */
export class StoreDamaged extends StoreUnavailable {}

/** The store cannot be opened or used as it is. The message tells the user what to do. */
export class StoreRejected extends Error {
  override name = 'StoreRejected';
}

export class StoreMissing extends StoreRejected {}
