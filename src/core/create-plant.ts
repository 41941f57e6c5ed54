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
import type { Admission, Attached, Create, CredentialVerifier } from './extension-points.ts';
import { fieldValues, type HeaderFields, isJsonMediaType } from './header-fields.ts';
import type { BodyFraming, ReceivedRequest, RequestHeaders } from './request.ts';
import { errorResponse, type HttpResponse, jsonResponse } from './response.ts';
import { TickBudget } from './tick-budget.ts';
import type { RateLimit } from './tokens/rate-limit.ts';
import { bearerToken, hashToken, isWellFormed } from './tokens/token.ts';
import type { TokenCache } from './tokens/token-cache.ts';

/** Time per tick for the reading of bodies longer than {@link SHORT_BODY_BYTES_MAX}. */
const LONG_BODY_BUDGET_MS = 2;

/** For a text in ASCII, latin1 and UTF-8 are the same. */
const NOT_ASCII = /[\x80-\xff]/;

/** Without a rate limit, a response has no rate limit fields. */
const UNLIMITED: { fields: HeaderFields } = { fields: [] };

const TOKEN_UNCHECKED = 'the store does not respond, so the token cannot be checked; send it again';

/** A create with valid header fields. If its body is short, only its token must be looked up. */
export interface PlainCreate {
  /** The hash of one of our tokens, or of an access token. */
  tokenHash: string;
  framing: BodyFraming;
}

/** @returns undefined for any other request, also one that will be rejected */
export function plainCreateOf({ method, path, framing, fields, expectsContinue }: RequestHeaders) {
  if (method !== 'POST' || path !== '/plants' || expectsContinue) return undefined;
  if (framing.kind === 'length' && framing.bytes > SHORT_BODY_BYTES_MAX) return undefined;
  const token = bearerToken(fieldValues(fields, 'authorization'));
  if (token === undefined || contentError(fields) !== undefined) return undefined;
  return { tokenHash: hashToken(token), framing };
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
  readonly #verifiers: readonly CredentialVerifier[];
  readonly #isWrapped: boolean;
  readonly #clock: Clock;
  readonly #longBodyBudget: TickBudget;
  /** Settles when all long bodies so far are read. */
  #longBodiesRead: Promise<unknown> = Promise.resolve();
  /** Resolves when the plant is durable or rejected. The call itself already queues the plant. */
  readonly create: Create;

  /** @param attached validates the tokens of other issuers, and wraps {@link create} */
  constructor(
    tokens: TokenCache,
    queue: PlantQueue,
    bodyBytesMax: number,
    rateLimit: RateLimit | undefined,
    { verifiers, wrappers }: Pick<Attached, 'verifiers' | 'wrappers'>,
    clock: Clock = SYSTEM_CLOCK,
  ) {
    this.#tokens = tokens;
    this.#queue = queue;
    this.bodyBytesMax = bodyBytesMax;
    this.#rateLimit = rateLimit;
    this.#verifiers = verifiers;
    this.#isWrapped = wrappers.length > 0;
    this.#clock = clock;
    this.#longBodyBudget = new TickBudget(LONG_BODY_BUDGET_MS, clock);
    const create: Create = (admission, reading) => this.#create(admission, reading);
    this.create = wrappers.reduce((inner, wrapper) => wrapper.wrap(inner), create);
  }

  /**
   * Checks credential, rate, content encoding, media type and size, in this order. The first error
   * is the response. The caller calls this once per request, because it counts the request.
   *
   * @param request gets the id of its token, even of a rejected one
   */
  async admit(request: ReceivedRequest): Promise<Admission | HttpResponse> {
    const { headers } = request;
    const token = bearerToken(fieldValues(headers.fields, 'authorization'));
    if (token === undefined) return errorResponse('noCredential');
    const tokenHash = isWellFormed(token) ? hashToken(token) : await this.#verify(token, request);
    if (typeof tokenHash !== 'string') return tokenHash;
    const tokenId = await this.tokenId(tokenHash, request);
    request.tokenId = this.#tokens.get(tokenHash)?.id;
    if (typeof tokenId !== 'number') return tokenId;
    const counted = this.#count(tokenId);
    if ('status' in counted) return counted;
    const error = this.#headersError(headers);
    if (error !== undefined) return errorResponse(error, undefined, counted.fields);
    return { tokenId, tokenHash, request, fields: counted.fields };
  }

  /** @returns the hash of the stored token to which another token leads, or the error */
  async #verify(token: string, request: ReceivedRequest): Promise<string | HttpResponse> {
    for (const verifier of this.#verifiers) {
      const verification = await verifier.verify(token, request);
      switch (verification.kind) {
        case 'valid':
          return verification.tokenHash;
        case 'unchecked':
          return errorResponse('storeUnavailable', verification.message);
        case 'rejected':
          if (verification.message !== undefined) return errorResponse('tokenRejected', verification.message);
      }
    }
    return errorResponse('tokenRejected');
  }

  /** @returns the id of a valid token, or the error; waits for the store if necessary */
  async tokenId(tokenHash: string, request: ReceivedRequest): Promise<number | HttpResponse> {
    const lookup = await this.#tokens.lookUp(tokenHash);
    switch (lookup.kind) {
      case 'valid':
        return lookup.id;
      case 'rejected':
        for (const verifier of this.#verifiers) verifier.onRejected(tokenHash, request);
        return errorResponse('tokenRejected');
      case 'storeUnavailable':
        return errorResponse('storeUnavailable', TOKEN_UNCHECKED);
    }
  }

  /**
   * The id of a token that is cached and known to be valid.
   *
   * @returns undefined also if the operation is wrapped: then each request is admitted in steps
   */
  cachedTokenId(tokenHash: string): number | undefined {
    if (this.#isWrapped) return undefined;
    for (const verifier of this.#verifiers) {
      const verifiedHash = verifier.verifiedHash(tokenHash);
      if (verifiedHash !== undefined) return this.#tokens.lookUpCached(verifiedHash);
    }
    return this.#tokens.lookUpCached(tokenHash);
  }

  /**
   * Does {@link read} and {@link create} of a short body in one promise.
   *
   * @param body has one character for each byte
   */
  async createShort(body: string, sender: Omit<NewPlantWrite, 'plant'>): Promise<HttpResponse> {
    const counted = this.#count(sender.recordedBy);
    if ('status' in counted) return counted;
    const { plant, error, message } = NOT_ASCII.test(body)
      ? readNewPlant(Buffer.from(body, 'latin1'))
      : readNewPlantText(body);
    if (plant === undefined) return errorResponse(error, message, counted.fields);
    return writeResponse(plant, await this.#queue.write({ ...sender, plant }), counted.fields);
  }

  /**
   * Reads the body of an admitted request. Long bodies are read one after the other, for a few
   * milliseconds of each tick. So other requests do not wait for a body of a million members, and
   * only one body has its names in memory. A thread would take as much memory.
   *
   * @returns undefined if `isAwaited` returns false: the client does not wait for the response. Then
   *   nothing is stored.
   */
  async read(body: Uint8Array, isAwaited: () => boolean): Promise<NewPlantReading | undefined> {
    if (body.length <= SHORT_BODY_BYTES_MAX) return readNewPlant(body);
    const reading = this.#longBodiesRead.then(() => this.#readInSlices(body, isAwaited));
    // A body that fails does not stop the bodies after it.
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

  async #create({ tokenId, fields, request }: Admission, reading: NewPlantReading): Promise<HttpResponse> {
    const { plant, error, message } = reading;
    if (plant === undefined) return errorResponse(error, message, fields);
    const write = { plant, recordedBy: tokenId, trace: request.trace };
    return writeResponse(plant, await this.#queue.write(write), fields);
  }

  /**
   * Counts the request against the rate limit.
   *
   * @returns the fields for its response, or the error
   */
  #count(tokenId: number): { fields: HeaderFields } | HttpResponse {
    if (this.#rateLimit === undefined) return UNLIMITED;
    const { isGranted, retryAfterSeconds, fields } = this.#rateLimit.take(tokenId, this.#clock.now());
    if (isGranted) return { fields };
    return errorResponse('tooManyRequests', undefined, ['Retry-After', String(retryAfterSeconds), ...fields]);
  }

  #headersError({ fields, framing }: RequestHeaders): ErrorName | undefined {
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
  if (result.kind !== 'confirmed') return errorResponse(result.error, undefined, fields);
  const { outcome, revision } = result;
  const proof = ['Plant-Id', `${plant.id}`, 'Plant-Revision', `${revision}`, 'Plant-Outcome', outcome];
  return jsonResponse(200, plantJson(plant), [...proof, ...fields], outcome);
}
