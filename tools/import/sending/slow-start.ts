/**
 * Lets at most as many rows be in flight as have had a result, and one more. If a gateway drops
 * If-Plant-Revision only after the test of this header, the first rows show it before many plants
 * are replaced.
 */
export class SlowStart {
  readonly #rowsMax: number;
  #sent = 0;
  #settled = 0;
  #wake = (): void => {};

  /** @param rowsMax rows after which there is no limit */
  constructor(rowsMax: number) {
    this.#rowsMax = rowsMax;
  }

  /** @returns a promise if the next row has to wait for a result */
  next(): Promise<void> | undefined {
    this.#sent++;
    if (this.#sent <= 2 * this.#settled + 1 || this.#settled >= this.#rowsMax) return undefined;
    return new Promise(resolve => {
      this.#wake = resolve;
    });
  }

  /** Notes the result of a row. */
  settled(): void {
    this.#settled++;
    if (this.#sent <= 2 * this.#settled + 1) this.#wake();
  }

  /** Ends the limit. */
  end(): void {
    this.#settled = this.#rowsMax;
    this.#wake();
  }
}
