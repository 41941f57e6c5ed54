import type { KnownHead } from './known-heads.ts';
import type { HttpResponse, ReceivedRequest } from './response.ts';
import type { ServerContext } from './server-context.ts';
import { TickBudget } from './tick-budget.ts';

/** Time per tick for those of connections without a pending response. They wait for nobody else. */
const FIRST_REQUEST_BUDGET_MS = 8;
/** Time per tick for those of connections with pending responses. */
const PIPELINED_BUDGET_MS = 0.5;
/** After this many requests, one at a time, a connection is taken for the only sender. */
const ONLY_SENDER_REQUESTS = 16;

/** The plain creates of all connections. Nothing is awaited before their plants are queued. */
export class PlainCreates {
  readonly #context: ServerContext;
  readonly #firstRequestBudget = new TickBudget(FIRST_REQUEST_BUDGET_MS);
  readonly #pipelinedBudget = new TickBudget(PIPELINED_BUDGET_MS);
  /** The connection of the last request, if that was a plain create. */
  #lastSender: object | undefined;
  #requestsInARow = 0;

  constructor(context: ServerContext) {
    this.#context = context;
  }

  /** @returns the id of the valid token; undefined if the request needs its handler */
  knownTokenOf({ create }: KnownHead): number | undefined {
    const { createPlant, mark } = this.#context;
    if (create === undefined || mark !== undefined || create.bodyBytes > createPlant.bodyBytesMax)
      return undefined;
    return createPlant.cachedTokenId(create.tokenHash);
  }

  budgetOf(pendingResponses: number): TickBudget {
    return pendingResponses === 0 ? this.#firstRequestBudget : this.#pipelinedBudget;
  }

  /**
   * Queues a plant.
   *
   * @param body whole, with one character for each byte
   * @param sender identifies the connection
   * @param isAlone whether the connection has no pending response
   */
  create(
    { head, traceparent }: KnownHead,
    body: string,
    tokenId: number,
    arrivedAt: number,
    sender: object,
    isAlone: boolean,
  ): { request: ReceivedRequest; response: Promise<HttpResponse> } {
    const { createPlant, traceContextOf } = this.#context;
    const trace = traceContextOf(traceparent);
    this.#requestsInARow = isAlone && this.#lastSender === sender ? this.#requestsInARow + 1 : 1;
    this.#lastSender = sender;
    const isOnlySender = this.#requestsInARow > ONLY_SENDER_REQUESTS;
    const response = createPlant.createShort(body, { recordedBy: tokenId, trace, isOnlySender });
    return { request: { head, trace, arrivedAt, bodyBytes: body.length, body, tokenId }, response };
  }

  /** Another kind of request arrived. */
  interrupt(): void {
    this.#lastSender = undefined;
  }
}
