/** An operation of the store failed. The cause goes into the log, never to a client. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable';
}

/** A part of the store failed, so only its plants did. The warnings of the engine name this part. */
export class StorePartlyUnavailable extends StoreUnavailable {
  override name = 'StorePartlyUnavailable';
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
export class StoreDamaged extends StoreUnavailable {
  override name = 'StoreDamaged';
}

/** The store cannot be opened or used as it is. The message tells the user what to do. */
export class StoreRejected extends Error {
  override name = 'StoreRejected';
}

/** There is no store at the address. */
export class StoreMissing extends StoreRejected {
  override name = 'StoreMissing';
}
