import type { Outcome } from '../../core/contract/plant.ts';
import type { ResponseObserver } from '../../core/extension-points.ts';
import type { ReceivedRequest } from '../../core/request.ts';
import { type HttpResponse, isErrorName, isOutcome } from '../../core/response.ts';
import type { LabelOf } from './rejected-requests.ts';

/** Maximum of the busiest tokens on the page. */
const BUSIEST_MAX = 8;
/** Maximum of the newest plants of an outcome, and of the revised ones. */
const NEWEST_MAX = 200;
/** Stored characters of a name and of a tag of these plants. */
const TEXT_LENGTH_MAX = 200;
/** A response body of more characters is not stored as it is. */
const CONTENT_LENGTH_MAX = 1_000;
const INTERVAL_MS = 10_000;
/** Intervals of the last minute. */
const INTERVALS = 6;

/** What a token has sent in an interval. */
interface TokenCounts {
  plants: number;
  errors: number;
}

/** A plant that was confirmed. `at` is in ms since 1970. */
interface ConfirmedPlant {
  at: number;
  id: bigint;
  /** JSON of the plant, which is parsed when an operator wants to see it. */
  content: string;
  outcome: Outcome;
  tokenId: number;
  /** Its number among all confirmed plants since the start. */
  order: number;
}

/** A plant that got a revision from a request. `at` is in ms since 1970. */
interface RevisedPlant {
  at: number;
  id: bigint;
  revision: number;
  tokenId: number;
}

/** A confirmed plant for the page. */
interface NewestPlant extends Pick<ConfirmedPlant, 'at' | 'outcome'> {
  id: string;
  /** Long names and tags are cut. */
  name: string;
  tag?: string;
  label: string;
}

/** What a token has sent in the last minute. */
interface BusyToken {
  label: string;
  plants: number;
  errors: number;
}

/**
 * The last plants that this instance confirmed, the busiest tokens of the last minute, and the last
 * use of each token since the start. All of it is only in memory.
 */
export class Activity implements ResponseObserver {
  /** By outcome, so that a list that is imported again leaves the new plants on the page. */
  readonly #newest: Record<Outcome, NewestRing<ConfirmedPlant>> = {
    created: new NewestRing(),
    revised: new NewestRing(),
    unchanged: new NewestRing(),
  };
  #confirmed = 0;
  /** Before it, this service confirmed nothing; ms since 1970. */
  readonly startedAt = Date.now();
  readonly #revised = new NewestRing<RevisedPlant>();
  /** The time of the last use by token id; ms since 1970. The store has only the day. */
  readonly lastUses = new Map<number, number>();
  /** Counts of each interval by token id. The newest interval is first. */
  #intervals: Map<number, TokenCounts>[] = [new Map()];
  /** When the newest interval began; ms, on the monotonic clock. */
  #startedAt = performance.now();

  responded({ result, plantId, revision, body }: HttpResponse, received: ReceivedRequest | undefined): void {
    const tokenId = received?.tokenId;
    if (tokenId === undefined) return;
    const at = Date.now();
    if (result !== 'tokenRejected') this.lastUses.set(tokenId, at);
    this.#advance();
    const counts = this.#intervals[0]!.getOrInsertComputed(tokenId, noCounts);
    if (isOutcome(result)) {
      counts.plants++;
      const id = plantId!;
      const content = storedContent(body);
      this.#newest[result].add({ at, id, content, outcome: result, tokenId, order: this.#confirmed++ });
      if (result === 'revised') this.#revised.add({ at, id, revision: revision!, tokenId });
    } else if (isErrorName(result)) counts.errors++;
  }

  /** The newest plants of each outcome, all together the newest first. */
  newest(labelOf: LabelOf): NewestPlant[] {
    return Object.values(this.#newest)
      .flatMap(ring => ring.newestFirst())
      .sort((one, two) => two.order - one.order)
      .map(({ at, id, content, outcome, tokenId }) => {
        return { at, id: String(id), ...shownContent(content), outcome, label: labelOf(tokenId) };
      });
  }

  /** The plants that were revised last, the newest first. @param token undefined: of all tokens */
  revised(
    labelOf: LabelOf,
    token: string | undefined,
  ): (Omit<RevisedPlant, 'tokenId'> & { label: string })[] {
    return this.#revised
      .newestFirst()
      .map(({ tokenId, ...revised }) => ({ ...revised, label: labelOf(tokenId) }))
      .filter(({ label }) => token === undefined || label === token);
  }

  /** The busiest tokens first. */
  busiest(labelOf: LabelOf): BusyToken[] {
    this.#advance();
    const elapsedMs = performance.now() - this.#startedAt;
    // The newest interval is incomplete, so the counts are extrapolated to a minute.
    const isMinute = this.#intervals.length === INTERVALS;
    const share = isMinute ? (INTERVALS * INTERVAL_MS) / ((INTERVALS - 1) * INTERVAL_MS + elapsedMs) : 1;
    const totals = new Map<number, TokenCounts>();
    for (const [tokenId, { plants, errors }] of this.#intervals.flatMap(counts => [...counts])) {
      const total = totals.getOrInsertComputed(tokenId, noCounts);
      total.plants += plants;
      total.errors += errors;
    }
    return [...totals]
      .map(([tokenId, { plants, errors }]) => {
        return { label: labelOf(tokenId), plants: plants * share, errors: errors * share };
      })
      .sort((a, b) => b.plants + b.errors - (a.plants + a.errors))
      .slice(0, BUSIEST_MAX);
  }

  /** Begins the intervals that are due, and forgets those before the last minute. */
  #advance(): void {
    const elapsed = Math.floor((performance.now() - this.#startedAt) / INTERVAL_MS);
    this.#startedAt += elapsed * INTERVAL_MS;
    const added = Array.from({ length: Math.min(elapsed, INTERVALS) }, () => new Map());
    this.#intervals = [...added, ...this.#intervals].slice(0, INTERVALS);
  }
}

/**
 * The newest items. The next one replaces the oldest one: shifting an array for each plant took one
 * percent of the main thread.
 */
class NewestRing<Item> {
  readonly #items: Item[] = [];
  #added = 0;

  add(item: Item): void {
    this.#items[this.#added++ % NEWEST_MAX] = item;
  }

  newestFirst(): Item[] {
    const next = this.#added % NEWEST_MAX;
    return [...this.#items.slice(next), ...this.#items.slice(0, next)].reverse();
  }
}

function noCounts(): TokenCounts {
  return { plants: 0, errors: 0 };
}

/** Cuts a long body at once: 200 plants of the largest size would take too much memory. */
function storedContent(body: string): string {
  if (body.length <= CONTENT_LENGTH_MAX) return body;
  // A part of a string of V8 keeps the whole string in memory, and a copy does not.
  return Buffer.from(JSON.stringify(shownContent(body))).toString();
}

function shownContent(body: string): Pick<NewestPlant, 'name' | 'tag'> {
  const { name, tag } = JSON.parse(body) as { name: string; tag?: string };
  const shown = { name: cutText(name) };
  return tag === undefined ? shown : { ...shown, tag: cutText(tag) };
}

/** Cuts a long name or tag for a list. */
export function cutText(text: string): string {
  return text.length <= TEXT_LENGTH_MAX ? text : `${text.slice(0, TEXT_LENGTH_MAX).toWellFormed()}…`;
}
