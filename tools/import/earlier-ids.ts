/** Ids that an import or a dry run remembers. More would fill the memory. */
export const IDS_MAX = 1_000_000;

/** The ids of the first {@link IDS_MAX} different rows. */
export class EarlierIds {
  readonly #ids = new Set<bigint>();

  add(id: bigint): void {
    if (!this.isFull) this.#ids.add(id);
  }

  has(id: bigint): boolean {
    return this.#ids.has(id);
  }

  get size(): number {
    return this.#ids.size;
  }

  /** Whether a further id is not remembered. */
  get isFull(): boolean {
    return this.#ids.size >= IDS_MAX;
  }
}
