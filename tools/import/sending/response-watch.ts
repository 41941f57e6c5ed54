import { setTimeout as wait } from 'node:timers/promises';
import type { PlantStore, StoredPlant } from '../../../src/client/plant-store.ts';
import { NOTHING_SENT } from '../../../src/client/plant-store-error.ts';
import type { ReceivedResponse, Transport } from '../../../src/client/transport.ts';

/** How long {@link ResponseWatch.waitForNextSecond} waits at most, and between two requests. */
const SECOND_TIMEOUT_MS = 1_500;
const SECOND_INTERVAL_MS = 100;
/** Two clocks can differ by this share of a time: adjustments by NTP reach 0.05 %. */
const CLOCK_DRIFT = 0.001;

/** A time of the service's clock before the first row was sent. */
export type TimeBefore =
  /** Milliseconds since 1970 UTC. */
  { kind: 'known'; ms: number } | { kind: 'unknown' };

/** A response that confirms a replaced plant. */
export interface Replacement {
  id: string;
  revision: string;
}

/**
 * Sees the responses of an import. It finds a time before the first row, by the clock of the service,
 * which gives revisions their times. It counts replaced plants also if the client rejects the
 * response, because the service should not have replaced them. It knows whether responses were lost.
 *
 * The field Date has whole seconds (RFC 9110 section 5.6.7), so a response shows that the clock has
 * reached this second. The first row was sent earlier, by the time that passed here until the
 * response. The latest of these times is the best: that of a response at the start of a second.
 */
export class ResponseWatch {
  readonly send: Transport;
  timeBefore: TimeBefore = { kind: 'unknown' };
  /** How many responses confirm a replaced plant, and the first of them. */
  replaced = 0;
  firstReplacement: Replacement | undefined;
  /** Requests without a response that says what became of the plant. */
  #unknownCount = 0;
  /** When the first request was sent; ms, monotonic clock. */
  #sentMs: number | undefined;
  /** The field Date of the latest response. */
  #date: string | undefined;
  /** Of how many seconds the start or a later time was seen. */
  #secondCount = 0;

  constructor(transport: Transport) {
    this.send = (request, signal) => {
      this.#sentMs ??= performance.now();
      this.#unknownCount++;
      const response = transport(request, signal);
      response.then(
        received => this.#onResponse(received),
        error => {
          if (isNothingSent(error)) this.#unknownCount--;
        },
      );
      return response;
    };
  }

  /**
   * Sends a plant of the import again, until a response is of another second than the first one.
   * Without it, the time could be a second too early, and so before revisions that the import has
   * replaced. If-Plant-Revision keeps the request from replacing what others stored meanwhile.
   */
  async waitForNextSecond(store: PlantStore, plant: StoredPlant): Promise<void> {
    const signal = AbortSignal.timeout(SECOND_TIMEOUT_MS);
    while (this.#secondCount === 1 && !signal.aborted) {
      await wait(SECOND_INTERVAL_MS);
      // Any response has a time.
      await store.createPlant(plant, { ifRevision: plant.revision, signal }).catch(() => {});
    }
  }

  /**
   * Whether a plant may be stored without a response that says so. Its repeated request is
   * `unchanged`, also if the first one has replaced content.
   */
  get hasLostResponses(): boolean {
    return this.#unknownCount > 0;
  }

  #onResponse({ status, headers }: ReceivedResponse): void {
    if (status < 500) this.#unknownCount--;
    const outcome = headers['plant-outcome'];
    if (outcome === undefined) return;
    if (outcome === 'revised') {
      this.replaced++;
      this.firstReplacement ??= { id: `${headers['plant-id']}`, revision: `${headers['plant-revision']}` };
    }
    if (headers.date !== this.#date) this.#onSecond(headers.date);
  }

  #onSecond(date: string | undefined): void {
    this.#date = date;
    const second = Date.parse(date ?? '');
    if (Number.isNaN(second)) return;
    this.#secondCount++;
    // The row may be stored in this millisecond.
    const ms = second - Math.ceil((performance.now() - this.#sentMs!) * (1 + CLOCK_DRIFT)) - 1;
    if (this.timeBefore.kind === 'unknown' || ms > this.timeBefore.ms)
      this.timeBefore = { kind: 'known', ms };
  }
}

/** Whether the connection was never opened. */
function isNothingSent(error: unknown): boolean {
  return NOTHING_SENT.includes((Object(error) as { code?: string }).code);
}
