import type { Outcome } from '../../core/contract/plant.ts';
import type { ResponseObserver } from '../../core/extension-points.ts';
import type { ReceivedRequest } from '../../core/request.ts';
import type { HttpResponse } from '../../core/response.ts';
import { isErrorName, isOutcome } from '../result-kind.ts';
import type { LabelOf } from './rejected-requests.ts';

const SHOWN_MAX = 8;
const NEWEST_MAX = 200;
const INTERVAL_MS = 10_000;
/** Intervals of the last minute. */
const INTERVALS = 6;

/** The plants and the errors of each token, by token id. */
type Counts = Map<number, { plants: number; errors: number }>;

const none = () => ({ plants: 0, errors: 0 });

/**
 * The last plants that this instance confirmed, the busiest tokens of the last minute, and the last
 * use of each token since the start. All of it is only in memory.
 */
export class Activity implements ResponseObserver {
  readonly #newest: { at: number; id: string; outcome: Outcome; tokenId: number }[] = [];
  /** The time of the last use by token id; ms since 1970. The store has only the day. */
  readonly lastUses = new Map<number, number>();
  /** The newest interval is first. */
  #intervals: Counts[] = [new Map()];
  #startedAt = performance.now();

  /** Counts a response. */
  responded({ result, headers }: Omit<HttpResponse, 'body'>, received: ReceivedRequest | undefined): void {
    const tokenId = received?.tokenId;
    if (tokenId === undefined) return;
    if (isOutcome(result)) {
      const id = headers[headers.indexOf('Plant-Id') + 1]!;
      this.#newest.push({ at: Date.now(), id, outcome: result, tokenId });
      if (this.#newest.length > NEWEST_MAX) this.#newest.shift();
    }
    if (result !== 'tokenRejected') this.lastUses.set(tokenId, Date.now());
    this.#advance();
    const counts = this.#intervals[0]!.getOrInsertComputed(tokenId, none);
    if (isOutcome(result)) counts.plants++;
    else if (isErrorName(result)) counts.errors++;
  }

  /** The newest plants first. */
  newest(labelOf: LabelOf) {
    const plants = this.#newest.toReversed();
    return plants.map(({ tokenId, ...plant }) => ({ ...plant, label: labelOf(tokenId) }));
  }

  /** The busiest tokens first, with means of plants and errors per second. */
  busiest(labelOf: LabelOf) {
    this.#advance();
    const elapsedMs = performance.now() - this.#startedAt;
    const seconds = ((this.#intervals.length - 1) * INTERVAL_MS + elapsedMs) / 1000;
    const totals: Counts = new Map();
    for (const [tokenId, { plants, errors }] of this.#intervals.flatMap(counts => [...counts])) {
      const total = totals.getOrInsertComputed(tokenId, none);
      total.plants += plants;
      total.errors += errors;
    }
    return [...totals]
      .map(([tokenId, { plants, errors }]) => {
        return { label: labelOf(tokenId), plants: plants / seconds, errors: errors / seconds };
      })
      .sort((a, b) => b.plants + b.errors - (a.plants + a.errors))
      .slice(0, SHOWN_MAX);
  }

  #advance(): void {
    const now = performance.now();
    for (; now - this.#startedAt >= INTERVAL_MS; this.#startedAt += INTERVAL_MS)
      this.#intervals = [new Map(), ...this.#intervals.slice(0, INTERVALS - 1)];
  }
}
