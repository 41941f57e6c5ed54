import type { AccessTokens } from '../extras/openid/access-tokens.ts';
import { type Clock, SYSTEM_CLOCK } from './clock.ts';
import type { NewPlantWrite, NotConfirmed, PlantQueue, WriteResult } from './commit/plant-commits.ts';
import type { ErrorName } from './contract/errors.ts';
import { SHORT_BODY_BYTES_MAX } from './contract/limits.ts';
import {
  type NewPlant,
  type NewPlantReading,
  plantJson,
  readNewPlant,
  readNewPlantInSlices,
  readNewPlantText,
} from './contract/plant.ts';
import { fieldValues, type HeaderFields, isJsonMediaType } from './header-fields.ts';
import type { BodyFraming, ReceivedRequest, RequestHead } from './request.ts';
import { errorResponse, type HttpResponse, jsonResponse } from './response.ts';
import { TickBudget } from './tick-budget.ts';
import type { RateLimit } from './tokens/rate-limit.ts';
import { bearerToken, hashToken, isWellFormed } from './tokens/token.ts';
import type { TokenCache } from './tokens/token-cache.ts';
import type { TraceContext, TracedRequest } from './trace-context.ts';

/** Time per tick for the reading of bodies longer than {@link SHORT_BODY_BYTES_MAX}. */
const LONG_BODY_BUDGET_MS = 2;

/** For a text in ASCII, latin1 and UTF-8 are the same. */
const NOT_ASCII = /[\x80-\xff]/;

const ACCESS_TOKEN_UNCHECKED = 'the access token cannot be checked now; send this plant again shortly';
const SUBJECT_UNSTORABLE =
  'the access token is valid, but the service cannot add its subject; tell the operator of the service';
const TOKEN_UNCHECKED = 'the store does not respond, so the token cannot be checked; send it again';

/** What validates tokens. `accessTokens` is undefined if only own tokens are accepted. */
export interface Credentials {
  tokens: TokenCache;
  accessTokens: AccessTokens | undefined;
}

/** A create with valid header fields. Only its token must be looked up, if its body is short. */
export interface PlainCreate {
  /** Of an own token, or of an access token. */
  tokenHash: string;
  framing: BodyFraming;
}

/** @returns undefined for any other request, also one that will be rejected */
export function plainCreateOf({ method, path, framing, fields, expectsContinue }: RequestHead) {
  if (method !== 'POST' || path !== '/plants' || expectsContinue) return undefined;
  if (framing.kind === 'length' && framing.bytes > SHORT_BODY_BYTES_MAX) return undefined;
  const token = bearerToken(fieldValues(fields, 'authorization'));
  if (token === undefined || contentError(fields) !== undefined) return undefined;
  return { tokenHash: hashToken(token), framing };
}

/** A request that its token and the rate limit allow. */
interface Admission {
  tokenId: number;
  /** Header fields of the response, whatever its status. */
  fields: HeaderFields;
  trace?: TraceContext | undefined;
}

/**
 * The operation `POST /plants`, in steps: no byte of a body is read before the token is validated.
 * It knows no server. Headers and bytes come in, responses go out.
 */
export class CreatePlant {
  readonly #tokens: TokenCache;
  readonly #queue: PlantQueue;
  /** A longer body is rejected, by its Content-Length if it has one. */
  readonly bodyBytesMax: number;
  readonly #rateLimit: RateLimit | undefined;
  readonly accessTokens: AccessTokens | undefined;
  readonly #clock: Clock;
  readonly #longBodyBudget: TickBudget;
  /** Settles when all long bodies so far are read. */
  #longBodiesRead: Promise<unknown> = Promise.resolve();

  constructor(
    credentials: Credentials,
    queue: PlantQueue,
    bodyBytesMax: number,
    rateLimit?: RateLimit,
    clock: Clock = SYSTEM_CLOCK,
  ) {
    this.#tokens = credentials.tokens;
    this.accessTokens = credentials.accessTokens;
    this.#queue = queue;
    this.bodyBytesMax = bodyBytesMax;
    this.#rateLimit = rateLimit;
    this.#clock = clock;
    this.#longBodyBudget = new TickBudget(LONG_BODY_BUDGET_MS, clock);
  }

  /**
   * Checks credential, rate, content encoding, media type and size, in this order. The first error
   * is the response. Must be called once per request, because it counts the request.
   *
   * @param received gets the id of the token, also of one that is rejected
   */
  async admit(
    head: RequestHead,
    received: Pick<ReceivedRequest, 'tokenId' | 'trace'>,
  ): Promise<(Admission & { tokenHash: string; rawHeaders: HeaderFields }) | HttpResponse> {
    const token = bearerToken(fieldValues(head.fields, 'authorization'));
    if (token === undefined) return errorResponse('noCredential');
    const tokenHash = isWellFormed(token) ? hashToken(token) : await this.#subjectHash(token, received);
    if (typeof tokenHash !== 'string') return tokenHash;
    const tokenId = await this.tokenId(tokenHash, received);
    received.tokenId = this.#tokens.get(tokenHash)?.id;
    if (typeof tokenId !== 'number') return tokenId;
    const admission = this.#count(tokenId);
    if ('status' in admission) return admission;
    const error = this.#headError(head);
    return error === undefined
      ? { ...admission, tokenHash, rawHeaders: head.fields }
      : errorResponse(error, undefined, admission.fields);
  }

  /** @returns the hash of the row of the subject of an access token, or the error */
  async #subjectHash(token: string, received: TracedRequest): Promise<string | HttpResponse> {
    const verification = await this.accessTokens?.verifyFor(token, received);
    switch (verification?.kind) {
      case 'subject':
        return verification.hash;
      case 'unstorable':
        return errorResponse('tokenRejected', SUBJECT_UNSTORABLE);
      case 'unchecked':
        return errorResponse('storeUnavailable', ACCESS_TOKEN_UNCHECKED);
      default:
        return errorResponse('tokenRejected');
    }
  }

  /** @returns the id of a valid token, or the error; waits for the store if necessary */
  async tokenId(tokenHash: string, received: TracedRequest): Promise<number | HttpResponse> {
    const tokenId = await this.#tokens.lookUp(tokenHash);
    if (tokenId === undefined) this.accessTokens?.onRevoked(tokenHash, received);
    if (tokenId === 'storeUnavailable') return errorResponse(tokenId, TOKEN_UNCHECKED);
    return tokenId ?? errorResponse('tokenRejected');
  }

  /** @returns the id of a token that is cached and known to be valid */
  cachedTokenId(tokenHash: string): number | undefined {
    return this.#tokens.lookUpCached(this.accessTokens?.cachedSubjectHash(tokenHash) ?? tokenHash);
  }

  /** Does {@link read} and {@link create} in one promise. @param body short, one character per byte */
  async createShort(body: string, sender: Omit<NewPlantWrite, 'plant'>): Promise<HttpResponse> {
    const admission = this.#count(sender.recordedBy);
    if ('status' in admission) return admission;
    const { plant, error, message } = NOT_ASCII.test(body)
      ? readNewPlant(Buffer.from(body, 'latin1'))
      : readNewPlantText(body);
    if (plant === undefined) return errorResponse(error, message, admission.fields);
    return writeResponse(plant, await this.#queue.write({ ...sender, plant }), admission.fields);
  }

  /**
   * Reads the body of an admitted request. Long bodies are read one after the other, for a few
   * milliseconds of each tick. So other requests do not wait for a body of a million members, and
   * only one body has its names in memory. A thread would take as much memory.
   *
   * @returns undefined if `isAwaited` returns false: the client does not wait for the response
   */
  async read(body: Uint8Array, isAwaited: () => boolean): Promise<NewPlantReading | undefined> {
    if (body.length <= SHORT_BODY_BYTES_MAX) return readNewPlant(body);
    const reading = this.#longBodiesRead.then(() => this.#readInSlices(body, isAwaited));
    // An error does not stop the bodies after it.
    this.#longBodiesRead = reading.catch(() => {});
    return await reading;
  }

  async #readInSlices(body: Uint8Array, isAwaited: () => boolean): Promise<NewPlantReading | undefined> {
    const slices = readNewPlantInSlices(body);
    for (;;) {
      if (!this.#longBodyBudget.hasTime()) await this.#longBodyBudget.nextTick();
      if (!isAwaited()) return undefined;
      const slice = slices.next();
      if (slice.done) return slice.value;
    }
  }

  /** Resolves when the plant is durable or rejected. The call itself already queues the plant. */
  async create({ tokenId, fields, trace }: Admission, reading: NewPlantReading): Promise<HttpResponse> {
    const { plant, error, message } = reading;
    if (plant === undefined) return errorResponse(error, message, fields);
    return writeResponse(plant, await this.#queue.write({ plant, recordedBy: tokenId, trace }), fields);
  }

  #count(tokenId: number): Admission | HttpResponse {
    if (this.#rateLimit === undefined) return { tokenId, fields: [] };
    const { isGranted, retryAfterSeconds, fields } = this.#rateLimit.take(tokenId, this.#clock.now());
    if (isGranted) return { tokenId, fields };
    return errorResponse('tooManyRequests', undefined, ['Retry-After', String(retryAfterSeconds), ...fields]);
  }

  #headError({ fields, framing }: RequestHead): ErrorName | undefined {
    const isTooLarge = framing.kind === 'length' && framing.bytes > this.bodyBytesMax;
    return contentError(fields) ?? (isTooLarge ? 'bodyTooLarge' : undefined);
  }
}

function contentError(fields: HeaderFields): ErrorName | undefined {
  if (fieldValues(fields, 'content-encoding').length > 0) return 'contentEncoding';
  const mediaTypes = fieldValues(fields, 'content-type');
  return mediaTypes.length === 1 && isJsonMediaType(mediaTypes[0]!) ? undefined : 'notJsonMediaType';
}

function writeResponse(
  plant: NewPlant,
  result: WriteResult | NotConfirmed,
  fields: HeaderFields,
): HttpResponse {
  if (result.rejected !== undefined) return errorResponse(result.rejected, undefined, fields);
  const { outcome, revision } = result;
  const proof = ['Plant-Id', `${plant.id}`, 'Plant-Revision', `${revision}`, 'Plant-Outcome', outcome];
  return jsonResponse(200, plantJson(plant), [...proof, ...fields], outcome);
}
