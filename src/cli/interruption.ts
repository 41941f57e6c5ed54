type StopSignal = 'SIGINT' | 'SIGTERM';

/** The person or the system wants the command to end. A command that lets it pass is reported as stopped. */
export class Interruption {
  readonly consequence: string;
  /** As a shell reports a process that the signal ended. */
  readonly exitCode: number;

  constructor(signal: StopSignal, consequence: string) {
    this.consequence = consequence;
    this.exitCode = signal === 'SIGINT' ? 130 : 143;
  }
}

/**
 * Lets the first Ctrl-C or SIGTERM stop the work in good order; a second one ends the process at once.
 *
 * @param work is stopped with an {@link Interruption} as the reason
 * @param consequence what becomes of the work then
 */
export async function stoppable<T>(work: (stop: AbortSignal) => Promise<T>, consequence = ''): Promise<T> {
  const stop = new AbortController();
  const onSignal = (signal: StopSignal) => stop.abort(new Interruption(signal, consequence));
  process.once('SIGINT', onSignal);
  process.once('SIGTERM', onSignal);
  try {
    return await work(stop.signal);
  } finally {
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
  }
}
