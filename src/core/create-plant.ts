import { BodyParser } from './body-parser.ts';
import { type Clock, SYSTEM_CLOCK } from './clock.ts';
import type { NewPlantWrite, PlantQueue } from './commit/plant-commits.ts';
import type { ErrorName } from './contract/errors.ts';
import { type NewPlantReading, readNewPlant, readNewPlantText } from './contract/plant.ts';
import { contentError } from './create-headers.ts';
import { Credentials } from './credentials.ts';
import type { Admission, CreateStep, CredentialValidator, OperationWrapper } from './extension-points.ts';
import { fieldValues, type HeaderFields } from './header-fields.ts';
import type { ByteText, OpenRequest, ReceivedRequest } from './request.ts';
import { errorResponse, type HttpResponse } from './response.ts';
import { revisionConditionOf } from './revision-condition.ts';
import type { CountedRequest, RateLimit } from './tokens/rate-limit.ts';
import { bearerToken } from './tokens/token.ts';
import type { TokenCache } from './tokens/token-cache.ts';
import { writeResponse } from './write-response.ts';

/** A text without such characters has the same bytes in latin1 and UTF-8. */
const NOT_ASCII = /[\x80-\xff]/;

/** Without a rate limit, a response has no rate limit fields. */
const UNLIMITED: CountedRequest = { kind: 'granted', fields: [] };

const TOO_MANY_LONG_BODIES = 'too many long bodies are in memory; send this plant again shortly';

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
 * Each request takes these steps, and the first error is its response. A plain create takes them
 * without a wait. Any other request has a handler.
 *
 * | step                        | plain create                      | what a handler adds, in {@link run}     |
 * | --------------------------- | --------------------------------- | --------------------------------------- |
 * | 1. validate the token       | {@link cachedTokenId}             | waits for the store, or for a validator |
 * | 2. count the request        | {@link createPlain}               |                                         |
 * | 3. check the header section | done before, by `createHeadersOf` | responds with its error                 |
 * | 4. receive the body         | done before, by the server        | waits for it                            |
 * | 5. parse the body           | {@link createPlain}               | parses a long body in slices            |
 * | 6. validate the token again |                                   | since a wait, it may be revoked         |
 * | 7. queue the plant          | {@link createPlain}               | calls the wrappers of this step         |
 */
export class CreatePlant {
  readonly #credentials: Credentials;
  readonly #queue: PlantQueue;
  readonly bodyBytesMax: number;
  readonly #rateLimit: RateLimit | undefined;
  readonly #isWrapped: boolean;
  readonly #clock: Clock;
  readonly #parser: BodyParser;
  readonly #create: CreateStep;

  constructor(
    { tokens, queue, bodyBytesMax, rateLimit, validators, wrappers }: CreatePlantParts,
    clock: Clock = SYSTEM_CLOCK,
  ) {
    this.#credentials = new Credentials(tokens, validators);
    this.#queue = queue;
    this.bodyBytesMax = bodyBytesMax;
    this.#rateLimit = rateLimit;
    this.#isWrapped = wrappers.length > 0;
    this.#clock = clock;
    this.#parser = new BodyParser(clock);
    const create: CreateStep = (admission, reading) => this.#createAdmitted(admission, reading);
    this.#create = wrappers.reduce((inner, wrapper) => wrapper.wrap(inner), create);
  }

  /**
   * Step 1 of a plain create.
   *
   * @param bearerHash the hash of the bearer token
   * @returns the id of the token; undefined if the request needs {@link run}, as all requests do if
   *   the operation is wrapped
   */
  cachedTokenId(bearerHash: string): number | undefined {
    return this.#isWrapped ? undefined : this.#credentials.cachedIdOf(bearerHash);
  }

  /**
   * Steps 2, 5 and 7 of a plain create, with a single promise. The call queues the plant before it
   * returns.
   */
  async createPlain(body: ByteText, sender: Omit<NewPlantWrite, 'plant'>): Promise<HttpResponse> {
    const counted = this.#count(sender.recordedBy);
    if (counted.kind === 'exceeded') return tooManyRequests(counted);
    const reading = NOT_ASCII.test(body) ? readNewPlant(Buffer.from(body, 'latin1')) : readNewPlantText(body);
    if (reading.kind === 'invalid') return errorResponse(reading.error, reading.message, counted.fields);
    const write = { ...sender, plant: reading.plant };
    return writeResponse(write, await this.#queue.write(write), counted.fields);
  }

  /**
   * Takes all steps of a request with a handler. No byte of its body is read before its token is
   * validated.
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
    const token = await this.#credentials.lookUp(admission.storedHash, request);
    if (token.kind === 'rejected') return rejected(token.error, token.message, admission.fields);
    if (!open.isAwaited) return { kind: 'abandoned' };
    // The plants of a connection stay in the order of its requests, because the call queues the
    // plant before it returns, and the server reads the next request after this result.
    return { kind: 'queued', response: this.#create(admission, parsed.reading) };
  }

  /** Steps 1 to 3. The request gets the id of its token, even of a rejected one. */
  async #admit(request: ReceivedRequest): Promise<Admission | RejectedCreate> {
    const { fields: headers, framing } = request.headers;
    const token = bearerToken(fieldValues(headers, 'authorization'));
    if (token === undefined) return rejected('noCredential');
    const credential = await this.#credentials.validate(token, request);
    if (credential.kind === 'rejected') return rejected(credential.error, credential.message);
    const { storedHash } = credential;
    const found = await this.#credentials.lookUp(storedHash, request);
    request.tokenId = this.#credentials.idOf(storedHash);
    if (found.kind === 'rejected') return rejected(found.error, found.message);
    const counted = this.#count(found.id);
    if (counted.kind === 'exceeded') return { kind: 'rejected', response: tooManyRequests(counted) };
    const { fields } = counted;
    const isTooLarge = framing.kind === 'length' && framing.bytes > this.bodyBytesMax;
    const error = contentError(headers) ?? (isTooLarge ? 'bodyTooLarge' : undefined);
    if (error !== undefined) return rejected(error, undefined, fields);
    const condition = revisionConditionOf(headers);
    if (condition.kind === 'invalid') {
      const response = errorResponse('badHttp', condition.message, fields);
      // A test is no error, so observers do not count it as one.
      return { kind: 'rejected', response: condition.isTest ? { ...response, result: 'other' } : response };
    }
    const { ifRevision } = condition;
    return { kind: 'admitted', tokenId: found.id, storedHash, request, ifRevision, fields };
  }

  /** Step 7, which wrappers may change. It queues the plant before its first await. */
  async #createAdmitted(
    { tokenId, fields, request, ifRevision }: Admission,
    reading: NewPlantReading,
  ): Promise<HttpResponse> {
    if (reading.kind === 'invalid') return errorResponse(reading.error, reading.message, fields);
    const write = { plant: reading.plant, recordedBy: tokenId, ifRevision, origin: request };
    return writeResponse(write, await this.#queue.write(write), fields);
  }

  /** Step 2: counts the request against the rate limit of its token. */
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
