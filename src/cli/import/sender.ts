import { setTimeout as wait } from 'node:timers/promises';
import { PlantStore, PlantStoreError, type StoredPlant } from '../../client/plant-store.ts';
import { type ErrorBody, errorBody } from '../../contract/errors.ts';
import type { NewPlant, Outcome } from '../../contract/plant.ts';
import { Failure } from '../failure.ts';
import type { ServiceAddress } from '../service-options.ts';
import { visible } from '../visible-text.ts';
import {
  ANSWER_WAIT_MS,
  IN_FLIGHT_TEXT_LENGTH_MAX,
  INTERNAL_ERROR_TRIES_MAX,
  OUTAGE_MAX_MS,
  RETRY_AFTER_MAX_MS,
  RETRY_WAIT_MAX_MS,
  RETRY_WAIT_MIN_MS,
  STOP_WAIT_MS,
} from './limits.ts';
import type { Outage } from './outage.ts';
import type { PlantRow } from './plant-row.ts';

/** Whoever is told what became of the rows. */
export interface SenderListener {
  onStored(outcome: Outcome): void;
  onRejected(row: PlantRow, fault: ErrorBody): void;
  /** The import cannot go on. */
  onStop(failure: unknown): void;
}

/** A row on its way, from {@link Sender.send} until it is stored or rejected. */
interface Delivery {
  row: PlantRow;
  plant: NewPlant;
  /** When its last request was sent, by `performance.now()`. */
  sentMs: number;
  tries: number;
  internalErrors: number;
  /** The next row with the same id, which is not sent before this one is settled. */
  next: Delivery | undefined;
}

/**
 * Sends rows to the service. A row is waiting for one of the same id, or on the wire, or waiting to be sent again;
 * in all three it is in flight, and how many are in flight is bounded. Rows with the same id are sent one after the
 * other in file order, for their order is that of the revisions; all others overtake each other freely.
 *
 * What an answer means: 200, 400 and 413 settle the row. 401, and anything a plant store does not answer, stops the
 * import. All else, with no answer at all, is tried again: after 100 ms, doubled from try to try up to 2 s, or as
 * long as `Retry-After` says; at most ten times after a 500, else until the service has been away for five minutes.
 */
export class Sender {
  readonly #address: ServiceAddress;
  readonly #inFlightMax: number;
  readonly #outage: Outage;
  readonly #listener: SenderListener;
  readonly #stop: AbortSignal;
  readonly #store: PlantStore;
  /** The last delivery in flight of each id; those before it lead to it by `next`. */
  readonly #lastOfId = new Map<bigint, Delivery>();
  readonly #retryTimers = new Set<NodeJS.Timeout>();
  #inFlight = 0;
  #inFlightTextLength = 0;
  #onWire = 0;
  #everAnswered = false;
  #isClosed = false;
  #waiter: { isOver: () => boolean; resolve: () => void } | undefined;

  /** @param stop when it is aborted, nothing more is sent, and whoever waits here gets its reason as an error */
  constructor(
    address: ServiceAddress,
    inFlightMax: number,
    outage: Outage,
    listener: SenderListener,
    stop: AbortSignal,
  ) {
    this.#address = address;
    this.#inFlightMax = inFlightMax;
    this.#outage = outage;
    this.#listener = listener;
    this.#stop = stop;
    // What may be tried again is tried here, where it is known how the other rows fare.
    this.#store = new PlantStore({ ...address, answerWaitMs: ANSWER_WAIT_MS, retryForMs: 0 });
    stop.addEventListener('abort', () => {
      for (const timer of this.#retryTimers) clearTimeout(timer);
      this.#wake();
    });
  }

  /** Whether {@link room} must be awaited before the next row. */
  get isFull(): boolean {
    return this.#inFlight >= this.#inFlightMax || this.#inFlightTextLength >= IN_FLIGHT_TEXT_LENGTH_MAX;
  }

  /** Takes a row; what becomes of it is told to the listener. */
  send(row: PlantRow, plant: NewPlant): void {
    const delivery: Delivery = { row, plant, sentMs: 0, tries: 0, internalErrors: 0, next: undefined };
    this.#inFlight++;
    this.#inFlightTextLength += textLength(plant);
    const before = this.#lastOfId.get(plant.id);
    this.#lastOfId.set(plant.id, delivery);
    if (before === undefined) this.#post(delivery);
    else before.next = delivery;
  }

  /**
   * Waits until a good part of what may be in flight is free again, so that the file is read on in strides.
   *
   * @throws the reason of the stop
   */
  async room(): Promise<void> {
    const inFlight = Math.floor((this.#inFlightMax * 3) / 4);
    await this.#until(
      () => this.#inFlight <= inFlight && this.#inFlightTextLength < IN_FLIGHT_TEXT_LENGTH_MAX,
    );
  }

  /**
   * Waits until every row is settled.
   *
   * @throws the reason of the stop
   */
  async drained(): Promise<void> {
    await this.#until(() => this.#inFlight === 0);
  }

  /** After a stop: waits a while for the answers that are still to come, and takes them in. */
  async settle(): Promise<void> {
    const answered = this.#when(() => this.#onWire === 0);
    await Promise.race([answered, wait(STOP_WAIT_MS, undefined, { ref: false })]);
  }

  /** Cuts the connections. */
  close(): void {
    this.#isClosed = true;
    this.#store.close();
  }

  async #until(isOver: () => boolean): Promise<void> {
    await this.#when(() => this.#stop.aborted || isOver());
    this.#stop.throwIfAborted();
  }

  async #when(isOver: () => boolean): Promise<void> {
    if (isOver()) return;
    await new Promise<void>(resolve => {
      this.#waiter = { isOver, resolve };
    });
  }

  #wake(): void {
    if (this.#waiter?.isOver() !== true) return;
    this.#waiter.resolve();
    this.#waiter = undefined;
  }

  #post(delivery: Delivery): void {
    if (this.#stop.aborted) return;
    delivery.tries++;
    delivery.sentMs = performance.now();
    this.#onWire++;
    this.#store.createPlant(delivery.plant).then(
      stored => this.#took(delivery, stored),
      error => this.#failed(delivery, error),
    );
  }

  #took(delivery: Delivery, { outcome }: StoredPlant): void {
    this.#onWire--;
    this.#everAnswered = true;
    this.#settled(delivery);
    this.#listener.onStored(outcome);
    this.#wake();
  }

  #failed(delivery: Delivery, error: unknown): void {
    if (this.#isClosed) return;
    this.#onWire--;
    if (error instanceof PlantStoreError) this.#judge(delivery, error);
    else this.#listener.onStop(error);
    this.#wake();
  }

  #judge(delivery: Delivery, error: PlantStoreError): void {
    const { status, retryAfterMs } = error;
    const isFirst = !this.#everAnswered;
    if (status !== undefined) this.#everAnswered = true;
    const fault = error.error === undefined ? undefined : { error: error.error, message: error.message };
    switch (status) {
      case undefined:
        this.#unanswered(delivery, error.code ?? 'no code', isFirst);
        break;
      case 400:
      case 413:
        if (fault === undefined) this.#listener.onStop(this.#notAPlantStore(error));
        else this.#reject(delivery, fault);
        break;
      case 401:
        this.#listener.onStop(
          new Failure(
            'the service refuses the token; make one for the store that it runs on, with: npx plant-store token create LABEL',
          ),
        );
        break;
      case 500:
        delivery.internalErrors++;
        if (delivery.internalErrors < INTERNAL_ERROR_TRIES_MAX) {
          this.#retry(delivery, 'answers 500', retryAfterMs);
        } else this.#reject(delivery, fault ?? errorBody('internal'));
        break;
      case 429:
        this.#retry(delivery, 'answers 429', retryAfterMs, true);
        break;
      case 408:
      case 502:
      case 503:
      case 504:
        this.#retry(delivery, `answers ${status}`, retryAfterMs);
        break;
      default:
        this.#listener.onStop(this.#notAPlantStore(error));
    }
  }

  #unanswered(delivery: Delivery, code: string, isFirst: boolean): void {
    if (!isFirst || MAY_PASS.has(code)) this.#retry(delivery, `does not answer (${code})`, 0);
    else {
      this.#listener.onStop(
        new Failure(
          `no service answers at ${this.#address.url} (${code}); start one with: npx plant-store serve, ` +
            'or give its address with --url',
        ),
      );
    }
  }

  #notAPlantStore({ status, error, message }: PlantStoreError): Failure {
    const { url } = this.#address;
    if (status === 200) return new Failure(`${url}: ${message}`);
    const said = error === undefined ? '' : ` (${visible(message)})`;
    return new Failure(`${url} answers ${status}${said}, as no plant store does; is this the right --url?`);
  }

  #reject(delivery: Delivery, fault: ErrorBody): void {
    this.#settled(delivery);
    this.#listener.onRejected(delivery.row, fault);
  }

  #settled(delivery: Delivery): void {
    this.#outage.answered();
    this.#inFlight--;
    this.#inFlightTextLength -= textLength(delivery.plant);
    if (delivery.next === undefined) this.#lastOfId.delete(delivery.plant.id);
    else this.#post(delivery.next);
  }

  /**
   * @param trouble what the service does, as the end of a sentence about it
   * @param isLimited whether it is there and only asks for fewer requests
   */
  #retry(delivery: Delivery, trouble: string, retryAfterMs: number, isLimited = false): void {
    if (this.#stop.aborted) return;
    const { sentMs } = delivery;
    if (isLimited ? this.#outage.limited(sentMs) : this.#outage.failed(trouble, sentMs)) {
      this.#listener.onStop(
        new Failure(
          `giving up: no plant could be stored for ${OUTAGE_MAX_MS / 60_000} minutes, for the service ${trouble}; ` +
            'what was stored before is kept, and running the import again is harmless',
        ),
      );
      return;
    }
    const doubledMs = Math.min(RETRY_WAIT_MAX_MS, RETRY_WAIT_MIN_MS * 2 ** (delivery.tries - 1));
    const leastMs = Math.max(doubledMs, Math.min(retryAfterMs, RETRY_AFTER_MAX_MS));
    // A little later each, or all that were refused together would come back together.
    const waitMs = leastMs * (1 + Math.random() / 4);
    const timer = setTimeout(() => {
      this.#retryTimers.delete(timer);
      this.#post(delivery);
    }, waitMs);
    this.#retryTimers.add(timer);
  }
}

/** Errors of a service that is there but was interrupted; any other one on first contact is a wrong address. */
const MAY_PASS = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'UND_ERR_SOCKET', 'UND_ERR_CONNECT_TIMEOUT']);

function textLength({ name, tag = '' }: NewPlant): number {
  return name.length + tag.length;
}
