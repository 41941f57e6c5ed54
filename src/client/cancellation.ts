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

  /**
   * Gives up with a signal of the caller.
   *
   * @returns undoes that
   */
  follow(signal: AbortSignal): () => void {
    const onAbort = (): void => this.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
    return () => signal.removeEventListener('abort', onAbort);
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
  }

  delete(part: Cancellable): void {
    this.#parts.delete(part);
  }
}
