/** A connection is the only sender after so many plain creates in a row, one at a time. */
const REQUESTS_IN_A_ROW = 16;

/**
 * Knows whether one connection sends all requests. While its plant is in flight, the service has
 * nothing else to do.
 */
export class OnlySender {
  /** The connection that sent the last request, if that request was a plain create. */
  #last: object | undefined;
  #requestsInARow = 0;

  /**
   * Notes a plain create.
   *
   * @returns whether its connection is the only sender
   */
  isSending(connection: object, hasNoPendingResponse: boolean): boolean {
    const isNextInARow = hasNoPendingResponse && this.#last === connection;
    this.#requestsInARow = isNextInARow ? this.#requestsInARow + 1 : 1;
    this.#last = connection;
    return this.#requestsInARow > REQUESTS_IN_A_ROW;
  }

  /** Notes a request that is no plain create. */
  interrupt(): void {
    this.#last = undefined;
  }
}
