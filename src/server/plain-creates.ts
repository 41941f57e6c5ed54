import type { Clock } from '../core/clock.ts';
import { SHORT_BODY_MAX_BYTES } from '../core/contract/limits.ts';
import type { CreatePlant } from '../core/create-plant.ts';
import { IterationBudget } from '../core/iteration-budget.ts';
import type { ByteText, ReceivedRequest } from '../core/request.ts';
import type { HttpResponse } from '../core/response.ts';
import { onlyChunkAt } from './body-decoder.ts';
import type { ParsedHeaders } from './parsed-headers.ts';

/** Time per tick for plain creates of connections without a pending response. */
const FIRST_REQUEST_BUDGET_MS = 8;
/** Time per tick for plain creates of connections with pending responses. */
const PIPELINED_BUDGET_MS = 0.5;

/** The whole body of a plain create with a valid token. */
interface PlainBody {
  kind: 'whole';
  tokenId: number;
  content: ByteText;
  /** Where the request ends. */
  end: number;
}

/** The kind of a request, as far as the received bytes of its body show. */
type PlainBodyReading =
  | PlainBody
  /** The body is incomplete. */
  | { kind: 'more' }
  /** The request is no plain create, so it needs the handler. */
  | { kind: 'needsHandler' };

const MORE: PlainBodyReading = { kind: 'more' };
export const NEEDS_HANDLER: PlainBodyReading = { kind: 'needsHandler' };

/** The plain creates of all connections. `create` queues a plant without an await. */
export class PlainCreates {
  readonly #createPlant: CreatePlant;
  readonly #bodyBytesMax: number;
  readonly #firstRequestBudget: IterationBudget;
  readonly #pipelinedBudget: IterationBudget;

  constructor(createPlant: CreatePlant, clock: Clock) {
    this.#createPlant = createPlant;
    this.#firstRequestBudget = new IterationBudget(FIRST_REQUEST_BUDGET_MS, clock);
    this.#pipelinedBudget = new IterationBudget(PIPELINED_BUDGET_MS, clock);
    this.#bodyBytesMax = Math.min(SHORT_BODY_MAX_BYTES, createPlant.bodyBytesMax);
  }

  /**
   * Reads the body that begins at `start`. Each call looks up the token, so a token that is revoked
   * while the body arrives is rejected.
   */
  bodyAt({ create }: ParsedHeaders, received: ByteText, start: number): PlainBodyReading {
    if (create === undefined) return NEEDS_HANDLER;
    const { bearerHash, framing } = create;
    if (framing.kind === 'length' && framing.bytes > this.#bodyBytesMax) return NEEDS_HANDLER;
    const tokenId = this.#createPlant.cachedTokenId(bearerHash);
    if (tokenId === undefined) return NEEDS_HANDLER;
    if (framing.kind === 'length') {
      const end = start + framing.bytes;
      if (end > received.length) return MORE;
      return { kind: 'whole', tokenId, content: received.slice(start, end), end };
    }
    const chunk = onlyChunkAt(received, start);
    const isShort = chunk !== undefined && chunk.content.length <= this.#bodyBytesMax;
    return isShort ? { kind: 'whole', tokenId, content: chunk.content, end: chunk.end } : NEEDS_HANDLER;
  }

  budgetOf(pendingResponses: number): IterationBudget {
    return pendingResponses === 0 ? this.#firstRequestBudget : this.#pipelinedBudget;
  }

  /** Queues a plant. */
  create(
    { headers, create }: ParsedHeaders,
    { tokenId, content: body }: PlainBody,
    arrivedAt: number,
  ): { request: ReceivedRequest; response: Promise<HttpResponse> } {
    const request = { arrivedAt, bodyBytes: body.length, body, tokenId, headers };
    const sender = { recordedBy: tokenId, ifRevision: create?.ifRevision, origin: request };
    return { request, response: this.#createPlant.createPlain(body, sender) };
  }
}
