import { DAY_MS } from '../clock.ts';
import { TOKENS_AT_A_TIME_MAX } from './stored-token.ts';

/** Where the last use of tokens is stored. */
export interface TokenUseStore {
  /** @param day in UTC, as `YYYY-MM-DD` */
  recordTokenUse(tokenIds: number[], day: string): Promise<void>;
}

/** Records in the store on which day tokens were last used. Days are counted from 1970 UTC. */
export class TokenUses {
  readonly #store: TokenUseStore;
  readonly #onError: (cause: unknown) => void;
  /** By token id, the day of its last use, until the store has recorded it. */
  readonly #days = new Map<number, number>();
  #recording: Promise<void> | undefined;
  #isFailing = false;

  /** @param onError is called when the store can no longer be written */
  constructor(store: TokenUseStore, onError: (cause: unknown) => void) {
    this.#store = store;
    this.#onError = onError;
  }

  /** Notes a use. An earlier day than the noted one changes nothing. */
  add(tokenId: number, day: number): void {
    const noted = this.#days.get(tokenId);
    if (noted === undefined || noted < day) this.#days.set(tokenId, day);
  }

  /** Only one recording runs at a time. It never throws: the next refresh repeats a failed one. */
  record(): Promise<void> {
    this.#recording ??= this.#recordAll().finally(() => (this.#recording = undefined));
    return this.#recording;
  }

  async #recordAll(): Promise<void> {
    for (;;) {
      const [day] = this.#days.values();
      if (day === undefined) break;
      const ids = this.#takeUsedOn(day);
      try {
        await this.#store.recordTokenUse(ids, new Date(day * DAY_MS).toISOString().slice(0, 10));
      } catch (cause) {
        // A token may have been used on a later day meanwhile.
        for (const id of ids) this.add(id, day);
        if (!this.#isFailing) this.#onError(cause);
        this.#isFailing = true;
        return;
      }
    }
    this.#isFailing = false;
  }

  /** Removes the tokens of a day, as many as one statement may record. */
  #takeUsedOn(day: number): number[] {
    const ids: number[] = [];
    for (const [id, usedOn] of this.#days) {
      if (ids.length === TOKENS_AT_A_TIME_MAX) break;
      if (usedOn !== day) continue;
      this.#days.delete(id);
      ids.push(id);
    }
    return ids;
  }
}
