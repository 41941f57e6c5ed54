import { setTimeout as wait } from 'node:timers/promises';
import { Failure } from '../../../src/cli/shared/failure.ts';
import { jsonObject, NOTHING_SENT } from '../../../src/client/plant-store-error.ts';
import type { HttpRequest, ReceivedResponse, Transport } from '../../../src/client/transport.ts';
import { ERRORS } from '../../../src/core/contract/errors.ts';
import { REVISION_TEST } from '../../../src/core/revision-condition.ts';

/** The body of a test has no plant, so nothing is stored if the service does not get the header. */
const NO_PLANT = '{}';
/** A second, and a margin for timers and clocks that are not exact. */
const NEXT_SECOND_MS = 1_050;

/** A response that confirms a replaced plant. */
export interface Replacement {
  id: string;
  revision: string;
}

/**
 * Sends the rows of an import, and sees their responses. Before the first row it sends a test: a
 * request without a plant, and with an invalid If-Plant-Revision. Rows wait for its response:
 *
 * | response to the test | without `--replace` | with `--replace` |
 * |---|---|---|
 * | error 40000, about the header | rows are sent | rows are sent a second later |
 * | an error of the body: the header is ignored | fails, as each plant could be replaced | as above |
 * | any other one, or none | the rows get it as theirs; their retry tests again | as before |
 *
 * The test also shows a time before the first row, by the clock of the service, which gives
 * revisions their times. The field Date has whole seconds (RFC 9110 section 5.6.7). The clock has
 * reached its second when the response is made, so no row gets an earlier time than this second.
 * The millisecond before it is the time for an undo, which then has all rows of the import.
 *
 * With `--replace`, the undo also must not have what was stored before the import. Such revisions
 * have times up to the test, and so at most the last millisecond of its second. This millisecond
 * is the time for an undo, and rows wait until the second has ended: NEXT_SECOND_MS after the
 * response. Revisions that others store during the wait can be in the undo, like those they store
 * after the first row.
 *
 * This is wrong by the difference between two clocks: if a proxy replaces Date by its own, or if
 * the service has several instances.
 */
export class RowTransport {
  /** The time for an undo, in ms since 1970 UTC; undefined if the test has not shown it. */
  timeBefore: number | undefined;
  /**
   * How many responses confirm a replaced plant, and the first of them. The client rejects such a
   * response if the service should not have replaced the plant.
   */
  replaced = 0;
  firstReplacement: Replacement | undefined;
  readonly #transport: Transport;
  readonly #replaces: boolean;
  #isTested = false;
  #test: Promise<ReceivedResponse | undefined> | undefined;
  /** Rows without a response that says what became of them. */
  #unknownCount = 0;

  constructor(transport: Transport, replaces: boolean) {
    this.#transport = transport;
    this.#replaces = replaces;
  }

  readonly send: Transport = (request, signal) => {
    if (this.#isTested) return this.#sendRow(request, signal);
    this.#test ??= this.#sendTest(request, signal).finally(() => {
      this.#test = undefined;
    });
    return this.#test.then(response => response ?? this.#sendRow(request, signal));
  };

  /**
   * Whether a plant may be stored without a response that says so. Its repeated request is
   * `unchanged`, also if the first one has replaced content.
   */
  get hasLostResponses(): boolean {
    return this.#unknownCount > 0;
  }

  /** @returns undefined if the rows can be sent, or a response that is not about the test */
  async #sendTest(request: HttpRequest, signal: AbortSignal): Promise<ReceivedResponse | undefined> {
    const headers = { ...request.headers, 'If-Plant-Revision': REVISION_TEST };
    const response = await this.#transport({ ...request, headers, body: NO_PLANT }, signal);
    const { error } = jsonObject(response.body);
    const isIgnored = error === ERRORS.notNewPlant.number || error === ERRORS.notJson.number;
    if (isIgnored && !this.#replaces)
      throw ignoredHeader('the service accepts a request with an invalid If-Plant-Revision');
    if (!isIgnored && error !== ERRORS.badHttp.number) return response;
    const second = Date.parse(response.headers.date ?? '');
    if (!Number.isNaN(second)) await this.#setTimeBefore(second, signal);
    this.#isTested = true;
    return undefined;
  }

  /** @param second the field Date of the test, in ms since 1970 UTC */
  async #setTimeBefore(second: number, signal: AbortSignal): Promise<void> {
    if (this.#replaces) {
      await wait(NEXT_SECOND_MS, undefined, { signal });
      this.timeBefore = second + 999;
    } else this.timeBefore = second - 1;
  }

  #sendRow(request: HttpRequest, signal: AbortSignal): Promise<ReceivedResponse> {
    this.#unknownCount++;
    const response = this.#transport(request, signal);
    response.then(
      ({ status, headers }) => {
        if (status < 500) this.#unknownCount--;
        if (headers['plant-outcome'] !== 'revised') return;
        this.replaced++;
        this.firstReplacement ??= { id: `${headers['plant-id']}`, revision: `${headers['plant-revision']}` };
      },
      error => {
        // The connection was never opened.
        if (NOTHING_SENT.includes(Object(error).code)) this.#unknownCount--;
      },
    );
    return response;
  }
}

/** @param symptom what shows that the header is ignored */
export function ignoredHeader(symptom: string): Failure {
  return new Failure(
    `${symptom}, so the import ended; the service, or a gateway in front of it, ignores this header: update the ` +
      'service, or make the gateway forward the header; --replace imports without it',
  );
}
