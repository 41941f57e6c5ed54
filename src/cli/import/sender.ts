import { setTimeout as wait } from 'node:timers/promises';
import { PlantStore, type StoredPlant } from '../../client/plant-store.ts';
import {
  ERRORS_OF_ONE_PLANT,
  errorAfterUnknown,
  mayHaveStored,
  PlantStoreError,
} from '../../client/plant-store-error.ts';
import { retryWaitMs } from '../../client/retry-wait.ts';
import { takesNoHttp } from '../../client/transport.ts';
import { ERRORS, type ErrorBody } from '../../contract/errors.ts';
import type { NewPlant, Outcome } from '../../contract/plant.ts';
import { Failure } from '../failure.ts';
import type { ServiceAddress } from '../service-options.ts';
import { visible, withoutToken } from '../visible-text.ts';
import {
  BAD_HTTP_TRIES_MAX,
  IMPORT_ANSWER_WAIT_MS,
  IMPORT_RETRY_WAIT_MAX_MS,
  IN_FLIGHT_TEXT_LENGTH_MAX,
  INTERNAL_ERROR_TRIES_MAX,
  OUTAGE_MAX_MS,
  RETRY_AFTER_MAX_MS,
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
  badHttpErrors: number;
  /** Whether a try that was not confirmed may have stored it. */
  isUnknown: boolean;
  /** The next row with the same id, which is not sent before this one is settled. */
  next: Delivery | undefined;
}

/**
 * Sends rows to the service. A row is waiting for one of the same id, or on the wire, or waiting to be sent again;
 * in all three it is in flight, and how many are in flight is bounded. Rows with the same id are sent one after the
 * other in file order, for their order is that of the revisions; all others overtake each other freely.
 *
 * What an answer means is the client's to say. 200 and an error of one plant settle the row. What may pass is tried again:
 * after 100 ms, doubled from try to try up to 2 s, or as long as `Retry-After` says; error 50001 ten times, which then
 * settles the row, and 40000 five times, which then stops the import, and all else, with no answer at all, until the service
 * has been away for five minutes. Where nothing has answered yet, only what tells of a service is tried again. Everything else stops the import.
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
    this.#store = new PlantStore({ ...address, answerWaitMs: IMPORT_ANSWER_WAIT_MS, retryForMs: 0 });
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
    const delivery: Delivery = {
      ...{ row, plant, sentMs: 0, tries: 0, internalErrors: 0, badHttpErrors: 0 },
      ...{ isUnknown: false, next: undefined },
    };
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

  #judge(delivery: Delivery, failedTry: PlantStoreError): void {
    const failed = delivery.isUnknown ? errorAfterUnknown(failedTry) : failedTry;
    delivery.isUnknown ||= mayHaveStored(failedTry);
    const { error, status, code, canRetry, retryAfterMs } = failed;
    const message = this.#shown(failed.message);
    const isFirst = !this.#everAnswered;
    if (status !== undefined) this.#everAnswered = true;
    if (error !== undefined && ERRORS_OF_ONE_PLANT.includes(error))
      this.#reject(delivery, { error, message });
    else if (!canRetry) this.#listener.onStop(this.#refusal(failed));
    else if (status === undefined) {
      if (isFirst && !MAY_PASS.includes(code)) this.#listener.onStop(this.#noService(failed));
      else this.#retry(delivery, `does not answer (${code})`, 0);
    } else if (error === ERRORS.internal.number && ++delivery.internalErrors >= INTERNAL_ERROR_TRIES_MAX) {
      this.#reject(delivery, { error, message });
    } else if (error === ERRORS.badHttp.number && ++delivery.badHttpErrors >= BAD_HTTP_TRIES_MAX) {
      this.#listener.onStop(this.#refusal(failed));
    } else this.#retry(delivery, `answers ${status}`, retryAfterMs, status === 429);
  }

  /** Why no row would fare better. */
  #refusal({ status, error, message }: PlantStoreError): Failure {
    if (status === undefined) return new Failure(message);
    const { url } = this.#address;
    if (status === 401) {
      return new Failure(
        'the service refuses the token; make one for the store that it runs on, with: npx plant-store token create LABEL',
      );
    }
    if (error === undefined) return new Failure(`${url}: ${this.#shown(message)}`);
    const question =
      status === 404 || status === 405
        ? 'is this the right --url?'
        : 'does a gateway before the service change requests?';
    return new Failure(`${url} answers ${status} (${this.#shown(message)}); ${question}`);
  }

  /** What the service or a gateway said, fit for a terminal and for a file. */
  #shown(message: string): string {
    return visible(withoutToken(message, this.#address.token));
  }

  /** Why it is not worth waiting for an answer where none has come yet. */
  #noService({ code, message }: PlantStoreError): Failure {
    if (takesNoHttp(code)) return new Failure(message);
    return new Failure(
      `no service answers at ${this.#address.url} (${code}); start one with: npx plant-store serve, ` +
        'or give its address with --url',
    );
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
    const askedMs = Math.min(retryAfterMs, RETRY_AFTER_MAX_MS);
    const waitMs = retryWaitMs(delivery.tries, IMPORT_RETRY_WAIT_MAX_MS, askedMs);
    const timer = setTimeout(() => {
      this.#retryTimers.delete(timer);
      this.#post(delivery);
    }, waitMs);
    this.#retryTimers.add(timer);
  }
}

/** Errors of a service that is there but was interrupted; any other one on first contact is a wrong address. */
const MAY_PASS: readonly (string | undefined)[] = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'];

function textLength({ name, tag = '' }: NewPlant): number {
  return name.length + tag.length;
}
