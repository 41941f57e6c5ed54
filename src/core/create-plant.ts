import { BodyParser } from './body-parser.ts';
import { type Clock, SYSTEM_CLOCK } from './clock.ts';
import type { NewPlantWrite, PlantQueue } from './commit/plant-commits.ts';
import type { ErrorName } from './contract/errors.ts';
import { type NewPlantReading, readNewPlant, readNewPlantText } from './contract/plant.ts';
import type { Admission, Create, CredentialValidator, OperationWrapper } from './extension-points.ts';
import { fieldValues, type HeaderFields, isJsonMediaType } from './header-fields.ts';
import type { BodyFraming, ByteText, OpenRequest, ReceivedRequest, RequestHeaders } from './request.ts';
import { errorResponse, type HttpResponse } from './response.ts';
import { revisionConditionOf } from './revision-condition.ts';
import type { CountedRequest, RateLimit } from './tokens/rate-limit.ts';
import { bearerToken, hashToken, isWellFormed } from './tokens/token.ts';
import type { TokenCache } from './tokens/token-cache.ts';
import { writeResponse } from './write-response.ts';

/** A text without such characters has the same bytes in latin1 and UTF-8. */
const NOT_ASCII = /[\x80-\xff]/;

/** Without a rate limit, a response has no rate limit fields. */
const UNLIMITED: CountedRequest = { kind: 'granted', fields: [] };

const TOKEN_UNCHECKED = 'the store does not respond, so the token cannot be checked; send it again';
const TOO_MANY_LONG_BODIES = 'too many long bodies are in memory; send this plant again shortly';

/** A create with valid header fields. If its body is short, only its token must be looked up. */
export interface CreateHeaders {
  /** The hash of a token of this service, or of an access token of another issuer. */
  tokenHash: string;
  framing: BodyFraming;
  /** As `ifRevision` of a write. */
  ifRevision: number | undefined;
}

/** @returns undefined for any other request, also one that will be rejected */
export function createHeadersOf({
  method,
  path,
  framing,
  fields,
  expectsContinue,
}: RequestHeaders): CreateHeaders | undefined {
  if (method !== 'POST' || path !== '/plants' || expectsContinue) return undefined;
  const token = bearerToken(fieldValues(fields, 'authorization'));
  if (token === undefined || contentError(fields) !== undefined) return undefined;
  const condition = revisionConditionOf(fields);
  if (condition.kind === 'invalid') return undefined;
  return { tokenHash: hashToken(token), framing, ifRevision: condition.ifRevision };
}

/** A step of the operation rejects the request with this response. */
type RejectedCreate = { kind: 'rejected'; response: HttpResponse };

/** The result of {@link CreatePlant.run}. */
export type CreateResult =
  | RejectedCreate
  /**
   * The plant is queued, and its response comes after its commit. If the body has no valid plant,
   * nothing is queued, and the response is an error.
   */
  | { kind: 'queued'; response: Promise<HttpResponse> }
  /** Nobody waits for the response any more. Nothing is stored. */
  | { kind: 'abandoned' };

/** The parts of the operation. */
export interface CreatePlantParts {
  readonly tokens: TokenCache;
  readonly queue: PlantQueue;
  /** A longer body is rejected. With a Content-Length, it is rejected before it is received. */
  readonly bodyBytesMax: number;
  /** If it is undefined, tokens have no rate limit. */
  readonly rateLimit: RateLimit | undefined;
  /** They validate the tokens of other issuers. */
  readonly validators: readonly CredentialValidator[];
  /** They wrap the last step of {@link CreatePlant.run}. */
  readonly wrappers: readonly OperationWrapper[];
}

/**
 * The operation `POST /plants`. It knows no server. Headers and bytes come in, responses go out.
 *
 * A request runs in steps ({@link run}). A plain create with a cached token needs none of their
 * waits ({@link cachedTokenId}, {@link createPlain}).
 */
export class CreatePlant {
  readonly #tokens: TokenCache;
  readonly #queue: PlantQueue;
  readonly bodyBytesMax: number;
  readonly #rateLimit: RateLimit | undefined;
  readonly #validators: readonly CredentialValidator[];
  readonly #isWrapped: boolean;
  readonly #clock: Clock;
  readonly #parser: BodyParser;
  readonly #create: Create;

  constructor(
    { tokens, queue, bodyBytesMax, rateLimit, validators, wrappers }: CreatePlantParts,
    clock: Clock = SYSTEM_CLOCK,
  ) {
    this.#tokens = tokens;
    this.#queue = queue;
    this.bodyBytesMax = bodyBytesMax;
    this.#rateLimit = rateLimit;
    this.#validators = validators;
    this.#isWrapped = wrappers.length > 0;
    this.#clock = clock;
    this.#parser = new BodyParser(clock);
    const create: Create = (admission, reading) => this.#createAdmitted(admission, reading);
    this.#create = wrappers.reduce((inner, wrapper) => wrapper.wrap(inner), create);
  }

  /**
   * Runs the steps of a request. The first error is the response:
   *
   * 1. Check the header section: credential, rate, content encoding, media type, announced
   *    size, condition.
   * 2. Receive the body. No byte of it is read before its token is validated.
   * 3. Parse the body.
   * 4. Look up the token again. It may have been revoked while the body arrived or was parsed.
   * 5. Queue the plant, or reject a body that has no valid plant.
   */
  async run(open: OpenRequest): Promise<CreateResult> {
    const { request } = open;
    const admission = await this.#admit(request);
    if (admission.kind === 'rejected') return admission;
    const body = await open.readBody(this.bodyBytesMax);
    switch (body.kind) {
      case 'abandoned':
        return body;
      case 'tooLarge':
        return rejected('bodyTooLarge', undefined, admission.fields);
      case 'noRoom':
        return rejected('busy', TOO_MANY_LONG_BODIES, admission.fields);
    }
    const { bytes } = body;
    request.arrivedAt = this.#clock.now();
    request.bodyBytes = bytes.length;
    request.body = bytes;
    const parsed = await this.#parser.parse(bytes, open);
    if (parsed.kind === 'abandoned') return parsed;
    const token = await this.#lookUp(admission.tokenHash, request);
    if (token.kind === 'rejected') return token;
    if (!open.isAwaited) return { kind: 'abandoned' };
    // The plants of a connection stay in the order of its requests, because the call queues the
    // plant before it returns, and the server reads the next request after this result.
    return { kind: 'queued', response: this.#create(admission, parsed.reading) };
  }

  /** Step 1. The request gets the id of its token, even of a rejected one. */
  async #admit(request: ReceivedRequest): Promise<Admission | RejectedCreate> {
    const { fields: headers, framing } = request.headers;
    const token = bearerToken(fieldValues(headers, 'authorization'));
    if (token === undefined) return rejected('noCredential');
    const credential = await this.#validate(token, request);
    if (credential.kind === 'rejected') return credential;
    const { tokenHash } = credential;
    const found = await this.#lookUp(tokenHash, request);
    request.tokenId = this.#tokens.get(tokenHash)?.id;
    if (found.kind === 'rejected') return found;
    const counted = this.#count(found.id);
    if (counted.kind === 'exceeded') return { kind: 'rejected', response: tooManyRequests(counted) };
    const { fields } = counted;
    const isTooLarge = framing.kind === 'length' && framing.bytes > this.bodyBytesMax;
    const error = contentError(headers) ?? (isTooLarge ? 'bodyTooLarge' : undefined);
    if (error !== undefined) return rejected(error, undefined, fields);
    const condition = revisionConditionOf(headers);
    if (condition.kind === 'invalid') return rejected('badHttp', condition.message, fields);
    const { ifRevision } = condition;
    return { kind: 'admitted', tokenId: found.id, tokenHash, request, ifRevision, fields };
  }

  /** Finds the stored token for a bearer token: that token itself, or the one a validator names. */
  async #validate(
    token: string,
    request: ReceivedRequest,
  ): Promise<{ kind: 'valid'; tokenHash: string } | RejectedCreate> {
    if (isWellFormed(token)) return { kind: 'valid', tokenHash: hashToken(token) };
    for (const validator of this.#validators) {
      const validation = await validator.validate(token, request);
      switch (validation.kind) {
        case 'valid':
          return validation;
        case 'unchecked':
          return rejected('storeUnavailable', validation.message);
        case 'rejected':
          if (validation.message !== undefined) return rejected('tokenRejected', validation.message);
      }
    }
    return rejected('tokenRejected');
  }

  /** Finds the id of a valid token. It waits for the store if necessary. */
  async #lookUp(
    tokenHash: string,
    request: ReceivedRequest,
  ): Promise<{ kind: 'valid'; id: number } | RejectedCreate> {
    const lookup = await this.#tokens.lookUp(tokenHash);
    switch (lookup.kind) {
      case 'valid':
        return lookup;
      case 'rejected':
        for (const validator of this.#validators) validator.onRejected(tokenHash, request);
        return rejected('tokenRejected');
      case 'storeUnavailable':
        return rejected('storeUnavailable', TOKEN_UNCHECKED);
    }
  }

  /**
   * The id of a token that is cached and known to be valid.
   *
   * The form of the token is not checked ({@link isWellFormed}), because no stored token has the hash
   * of a bearer token of another form. `CredentialValidation` requires this of validators.
   *
   * @returns undefined also if the operation is wrapped: a wrapper sees only the steps of {@link run}
   */
  cachedTokenId(tokenHash: string): number | undefined {
    if (this.#isWrapped) return undefined;
    for (const validator of this.#validators) {
      const storedHash = validator.storedHashOf(tokenHash);
      if (storedHash !== undefined) return this.#tokens.lookUpCached(storedHash);
    }
    return this.#tokens.lookUpCached(tokenHash);
  }

  /**
   * Counts a request, parses its short body and creates its plant, with a single promise. The call
   * queues the plant before it returns.
   */
  async createPlain(body: ByteText, sender: Omit<NewPlantWrite, 'plant'>): Promise<HttpResponse> {
    const counted = this.#count(sender.recordedBy);
    if (counted.kind === 'exceeded') return tooManyRequests(counted);
    const reading = NOT_ASCII.test(body) ? readNewPlant(Buffer.from(body, 'latin1')) : readNewPlantText(body);
    if (reading.kind === 'invalid') return errorResponse(reading.error, reading.message, counted.fields);
    const write = { ...sender, plant: reading.plant };
    return writeResponse(write, await this.#queue.write(write), counted.fields);
  }

  /** Step 5, which wrappers may change. It queues the plant before its first await. */
  async #createAdmitted(
    { tokenId, fields, request, ifRevision }: Admission,
    reading: NewPlantReading,
  ): Promise<HttpResponse> {
    if (reading.kind === 'invalid') return errorResponse(reading.error, reading.message, fields);
    const write = { plant: reading.plant, recordedBy: tokenId, ifRevision, trace: request.trace };
    return writeResponse(write, await this.#queue.write(write), fields);
  }

  /** Counts the request against the rate limit of its token. */
  #count(tokenId: number): CountedRequest {
    return this.#rateLimit === undefined ? UNLIMITED : this.#rateLimit.take(tokenId, this.#clock.now());
  }
}

function rejected(error: ErrorName, message?: string, fields?: HeaderFields): RejectedCreate {
  return { kind: 'rejected', response: errorResponse(error, message, fields) };
}

function tooManyRequests({ retryAfterSeconds, fields }: CountedRequest & { kind: 'exceeded' }): HttpResponse {
  return errorResponse('tooManyRequests', undefined, ['Retry-After', String(retryAfterSeconds), ...fields]);
}

function contentError(fields: HeaderFields): ErrorName | undefined {
  if (fieldValues(fields, 'content-encoding').length > 0) return 'contentEncoding';
  const mediaTypes = fieldValues(fields, 'content-type');
  return mediaTypes.length === 1 && isJsonMediaType(mediaTypes[0]!) ? undefined : 'notJsonMediaType';
}
