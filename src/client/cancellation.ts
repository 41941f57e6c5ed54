/** What can be given up before it is done. */
export interface Cancellable {
  /** @param reason what whoever waits for it gets as an error */
  abandon(reason: unknown): void;
}

/**
 * What is given up together. An AbortSignal would do, but in Node a listener of one costs as much as all else that the
 * client does for a plant.
 */
export class Cancellation {
  readonly #parts = new Set<Cancellable>();
  #aborted: { reason: unknown } | undefined;

  get isAborted(): boolean {
    return this.#aborted !== undefined;
  }

  abort(reason: unknown): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = { reason };
    for (const part of this.#parts) part.abandon(reason);
  }

  throwIfAborted(): void {
    if (this.#aborted !== undefined) throw this.#aborted.reason;
  }

  add(part: Cancellable): void {
    this.#parts.add(part);
    if (this.#aborted !== undefined) part.abandon(this.#aborted.reason);
  }

  delete(part: Cancellable): void {
    this.#parts.delete(part);
  }
}

/**
 * Calls back when a signal of the caller is aborted, also where it is already.
 *
 * @returns ends that
 */
export function onAbort(signal: AbortSignal | undefined, callback: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => {};
  const listener = (): void => callback(signal.reason);
  if (signal.aborted) listener();
  signal.addEventListener('abort', listener);
  return () => signal.removeEventListener('abort', listener);
}
