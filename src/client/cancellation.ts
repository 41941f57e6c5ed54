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
  /**
   * Each part has a slot, which is used again. In V8 the discarded tables of a busy Set keep all that came after them alive
   * until a full garbage collection.
   */
  readonly #parts: (Cancellable | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  #aborted: { reason: unknown } | undefined;

  get isAborted(): boolean {
    return this.#aborted !== undefined;
  }

  abort(reason: unknown): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = { reason };
    for (const part of this.#parts) part?.abandon(reason);
  }

  throwIfAborted(): void {
    if (this.#aborted !== undefined) throw this.#aborted.reason;
  }

  /** @returns the slot by which it is removed when it is done */
  add(part: Cancellable): number {
    const slot = this.#freeSlots.pop() ?? this.#parts.length;
    this.#parts[slot] = part;
    if (this.#aborted !== undefined) part.abandon(this.#aborted.reason);
    return slot;
  }

  remove(slot: number): void {
    this.#parts[slot] = undefined;
    this.#freeSlots.push(slot);
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
