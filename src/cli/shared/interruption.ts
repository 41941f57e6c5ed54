type StopSignal = 'SIGINT' | 'SIGTERM';

/** A second signal within this time may be the same Ctrl-C, since npm sends it once more. */
const REPEATED_SIGNAL_MS = 500;

/** The reason of an abort by a signal. `main` prints it and ends with its exit code. */
export class Interruption {
  readonly consequence: string;
  /** 128 plus the signal number, as a shell reports a process that a signal ended. */
  readonly exitCode: number;

  constructor(signal: StopSignal, consequence: string) {
    this.consequence = consequence;
    this.exitCode = signal === 'SIGINT' ? 130 : 143;
  }
}

/**
 * Listens for the first of these signals, and stops {@link REPEATED_SIGNAL_MS} later. Then the next
 * signal ends the process at once.
 *
 * @param listener must change nothing when it is called again
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

/** Runs work that the first Ctrl-C or SIGTERM aborts. The user then reads the consequence. */
export async function stoppable<T>(work: (stop: AbortSignal) => Promise<T>, consequence = ''): Promise<T> {
  const stop = new AbortController();
  const stopListening = onFirstSignal(['SIGINT', 'SIGTERM'], signal =>
    stop.abort(new Interruption(signal, consequence)),
  );
  try {
    return await work(stop.signal);
  } finally {
    // After an abort, the listener stays for a while, since npm may repeat the signal.
    if (!stop.signal.aborted) stopListening();
  }
}
