type StopSignal = 'SIGINT' | 'SIGTERM';

/** The person or the system wants the command to end. */
export class Interruption {
  readonly signal: StopSignal;

  constructor(signal: StopSignal) {
    this.signal = signal;
  }

  /** As a shell reports a process that the signal ended. */
  get exitCode(): number {
    return this.signal === 'SIGINT' ? 130 : 143;
  }
}

/**
 * Lets the first Ctrl-C or SIGTERM stop the work in good order; a second one ends the process at once.
 *
 * @param work is stopped with an {@link Interruption} as the reason
 */
export async function stoppable<T>(work: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const onSignal = (signal: StopSignal) => stop.abort(new Interruption(signal));
  process.once('SIGINT', onSignal);
  process.once('SIGTERM', onSignal);
  try {
    return await work(stop.signal);
  } finally {
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
  }
}
