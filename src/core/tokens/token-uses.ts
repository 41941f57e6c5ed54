import type { Clock } from '../clock.ts';
import { TOKENS_AT_A_TIME_MAX } from './stored-token.ts';

/** Where the last use of tokens is stored. */
export interface TokenUseStore {
  /** @param day in UTC, as `YYYY-MM-DD` */
  recordTokenUse(tokenIds: number[], day: string): Promise<void>;
}

/** Records in the store on which day tokens were last used. */
export class TokenUses {
  readonly #store: TokenUseStore;
  readonly #onError: (cause: unknown) => void;
  readonly #clock: Clock;
  /** Ids of tokens that were used, until the store has recorded them. */
  readonly #used = new Set<number>();
  #recording: Promise<void> | undefined;
  #isFailing = false;

  /** @param onError is called when the store can no longer be written */
  constructor(store: TokenUseStore, onError: (cause: unknown) => void, clock: Clock) {
    this.#store = store;
    this.#onError = onError;
    this.#clock = clock;
  }

  add(tokenId: number): void {
    this.#used.add(tokenId);
  }

  /** Only one recording runs at a time. It never throws: the next refresh repeats a failed one. */
  record(): Promise<void> {
    this.#recording ??= this.#recordAll().finally(() => (this.#recording = undefined));
    return this.#recording;
  }

  async #recordAll(): Promise<void> {
    let ids: number[] = [];
    try {
      while (this.#used.size > 0) {
        ids = [...this.#used.values().take(TOKENS_AT_A_TIME_MAX)];
        for (const id of ids) this.#used.delete(id);
        await this.#store.recordTokenUse(ids, new Date(this.#clock.wallNow()).toISOString().slice(0, 10));
      }
      this.#isFailing = false;
    } catch (cause) {
      for (const id of ids) this.#used.add(id);
      if (!this.#isFailing) this.#onError(cause);
      this.#isFailing = true;
    }
  }
}
