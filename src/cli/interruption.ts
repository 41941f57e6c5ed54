type StopSignal = 'SIGINT' | 'SIGTERM';

/** Under npm one Ctrl-C can arrive twice: from the terminal, and from npm, which passes it on. A person is slower than this. */
const REPEATED_SIGNAL_MS = 500;

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
 * Listens for the first of these signals. A second one ends the process at once, unless it comes within
 * {@link REPEATED_SIGNAL_MS}: then it is the same signal again.
 *
 * @param listener is also called for the same signal again, which must change nothing
 * @returns a function that stops listening
 */
export function onFirstSignal(signals: StopSignal[], listener: (signal: StopSignal) => void): () => void {
  const stopListening = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  const onSignal = (signal: StopSignal): void => {
    setTimeout(stopListening, REPEATED_SIGNAL_MS).unref();
    listener(signal);
  };
  for (const signal of signals) process.on(signal, onSignal);
  return stopListening;
}

/**
 * Lets the first Ctrl-C or SIGTERM stop the work in good order; a second one ends the process at once.
 *
 * @param work is stopped with an {@link Interruption} as the reason
 * @param consequence what becomes of the work then
 */
export async function stoppable<T>(work: (stop: AbortSignal) => Promise<T>, consequence = ''): Promise<T> {
  const stop = new AbortController();
  const stopListening = onFirstSignal(['SIGINT', 'SIGTERM'], signal =>
    stop.abort(new Interruption(signal, consequence)),
  );
  try {
    return await work(stop.signal);
  } finally {
    // The repetition of the signal that stopped the work may still come.
    if (!stop.signal.aborted) stopListening();
  }
}
