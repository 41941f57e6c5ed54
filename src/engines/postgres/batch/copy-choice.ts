/** One row is stored by the prepared INSERT. */
const COPIED_ROWS_MIN = 2;
/** The number of batches that are inserted after one that met a stored key. */
const INSERTED_AFTER_CONFLICT = 8;

/**
 * Chooses between COPY and INSERT for a batch of new revisions. COPY costs the servers less for each
 * row, because it needs no plan. But it fails as a whole if one key exists, and then the batch is
 * inserted. Where ids are repeated, this would happen with almost every batch, so a
 * conflict is followed by some batches without COPY.
 */
export class CopyChoice {
  #insertsLeft = 0;

  /** @returns whether the next batch of so many rows is to be copied */
  next(rowCount: number): boolean {
    if (this.#insertsLeft === 0) return rowCount >= COPIED_ROWS_MIN;
    this.#insertsLeft--;
    return false;
  }

  /** Notes that a key of a batch existed. */
  onConflict(): void {
    this.#insertsLeft = INSERTED_AFTER_CONFLICT;
  }
}
