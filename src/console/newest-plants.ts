import type { Outcome } from '../contract/plant.ts';
import { type HttpResponse, isOutcome, type ReceivedRequest } from '../http/response.ts';
import type { LabelOf } from './rejected-requests.ts';

const NEWEST_MAX = 200;

interface NewestPlant {
  /** Milliseconds since 1970. */
  at: number;
  /** All digits. */
  id: string;
  outcome: Outcome;
  tokenId: number | undefined;
}

/** The last plants that this instance confirmed, in memory only. */
export class NewestPlants {
  readonly #plants: NewestPlant[] = [];
  #count = 0;

  /** The service calls it with every response. It replaces the oldest plant, and moves no other. */
  observe({ result, headers }: Omit<HttpResponse, 'body'>, received: ReceivedRequest | undefined): void {
    if (!isOutcome(result)) return;
    const id = headers[headers.indexOf('Plant-Id') + 1]!;
    const plant = { at: Date.now(), id, outcome: result, tokenId: received?.tokenId };
    this.#plants[this.#count++ % NEWEST_MAX] = plant;
  }

  /** The newest first, for the page. */
  list(labelOf: LabelOf) {
    const oldest = this.#count % NEWEST_MAX;
    const inOrder = [...this.#plants.slice(oldest), ...this.#plants.slice(0, oldest)];
    return inOrder
      .reverse()
      .map(({ at, id, outcome, tokenId }) => ({ at, id, outcome, label: labelOf(tokenId ?? 0) }));
  }
}
