import { bearerToken } from '../auth/authorization-header.ts';
import type { RateLimit } from '../auth/rate-limit.ts';
import { TokenHashes } from '../auth/token.ts';
import type { TokenCache } from '../auth/token-cache.ts';
import type { ErrorName } from '../contract/errors.ts';
import { type NewPlantReading, plantJson, readNewPlant } from '../contract/plant.ts';
import type { PlantWriter } from '../store/plant-store.ts';
import { fieldValues, isJsonMediaType } from './header-fields.ts';
import { SHORT_BODY_BYTES_MAX } from './limits.ts';
import { LongBodies } from './long-bodies.ts';
import { errorResponse, type HttpResponse, jsonResponse } from './response.ts';

/** A request that may send its body. */
export interface Admission {
  /** Of the caller's token. */
  tokenHash: string;
  /** The id of that token. */
  tokenId: number;
  /** Header fields for the answer, whatever it is; names and values in turn. */
  fields: readonly string[];
}

/**
 * The operation `POST /plants`, in two steps, so that nothing of a body is read before the credential is accepted.
 * It knows no server: heads and bytes come in, answers go out.
 */
export class CreatePlant {
  readonly #tokenHashes = new TokenHashes();
  readonly #tokens: TokenCache;
  readonly #writer: PlantWriter;
  /** A body that is longer is refused, by its head where it says so. */
  readonly bodyBytesMax: number;
  readonly #rateLimit: RateLimit | undefined;
  readonly #longBodies = new LongBodies();

  /** @param rateLimit of each token; undefined for none */
  constructor(tokens: TokenCache, writer: PlantWriter, bodyBytesMax: number, rateLimit?: RateLimit) {
    this.#tokens = tokens;
    this.#writer = writer;
    this.bodyBytesMax = bodyBytesMax;
    this.#rateLimit = rateLimit;
  }

  /**
   * Decides by its head whether a request may send its body. When several faults apply, the first of credential, rate,
   * media type and size is the one that is answered. Once for each request, since it counts it.
   *
   * @param rawHeaders names and values in turn, repeated fields included
   * @returns what goes on with the body, or the answer that refuses
   */
  async admit(rawHeaders: readonly string[]): Promise<Admission | HttpResponse> {
    const token = bearerToken(fieldValues(rawHeaders, 'authorization'));
    if (token === undefined) return errorResponse('noCredential');
    const tokenHash = this.#tokenHashes.of(token);
    if (tokenHash === undefined) return errorResponse('tokenRejected');
    const tokenId = await this.#tokens.lookUp(tokenHash);
    if (tokenId === undefined) return errorResponse('tokenRejected');
    if (tokenId === 'storeUnavailable')
      return errorResponse(
        tokenId,
        'the store does not answer, so the token cannot be checked; send it again',
      );
    const admission = this.#count(tokenId);
    if ('status' in admission) return admission;
    const fault = this.#headersFault(rawHeaders);
    return fault === undefined
      ? { ...admission, tokenHash }
      : errorResponse(fault, undefined, admission.fields);
  }

  /** @returns the id of a token that is known to be in force; undefined for any other */
  cachedTokenId(tokenHash: string): number | undefined {
    return this.#tokens.lookUpCached(tokenHash);
  }

  /** As {@link read} and {@link create}, for a whole request with a short body whose head is known to be without fault. */
  async createOnFastPath(tokenId: number, body: Uint8Array): Promise<HttpResponse> {
    const admission = this.#count(tokenId);
    return 'status' in admission ? admission : this.create(admission, readNewPlant(body));
  }

  /**
   * Reads the body of an admitted request, a long one behind those that came before it.
   *
   * @param isAwaited whether anybody still waits for the answer
   * @returns undefined where nobody does
   */
  async read(body: Uint8Array, isAwaited: () => boolean): Promise<NewPlantReading | undefined> {
    return body.length > SHORT_BODY_BYTES_MAX ? this.#longBodies.read(body, isAwaited) : readNewPlant(body);
  }

  /** Keeps the plant, and answers once it is durable; or answers with what is wrong with the body. */
  async create(
    { tokenId, fields }: Omit<Admission, 'tokenHash'>,
    reading: NewPlantReading,
  ): Promise<HttpResponse> {
    if (reading.plant === undefined) return errorResponse(reading.error, reading.message, fields);
    const { plant } = reading;
    const result = await this.#writer.write({ plant, recordedBy: tokenId });
    if (result.rejected !== undefined) return errorResponse(result.rejected, undefined, fields);
    const { outcome, revision } = result;
    const proof = ['Plant-Id', `${plant.id}`, 'Plant-Revision', `${revision}`, 'Plant-Outcome', outcome];
    return jsonResponse(200, plantJson(plant), [...proof, ...fields], outcome);
  }

  /** Counts a request against what its token is granted. */
  #count(tokenId: number): Omit<Admission, 'tokenHash'> | HttpResponse {
    if (this.#rateLimit === undefined) return { tokenId, fields: [] };
    const { isGranted, retryAfterSeconds, fields } = this.#rateLimit.take(tokenId, performance.now());
    if (isGranted) return { tokenId, fields };
    return errorResponse('tooManyRequests', undefined, ['Retry-After', String(retryAfterSeconds), ...fields]);
  }

  #headersFault(rawHeaders: readonly string[]): ErrorName | undefined {
    if (fieldValues(rawHeaders, 'content-encoding').length > 0) return 'contentEncoding';
    const mediaTypes = fieldValues(rawHeaders, 'content-type');
    if (mediaTypes.length !== 1 || !isJsonMediaType(mediaTypes[0]!)) return 'notJsonMediaType';
    const [contentLength] = fieldValues(rawHeaders, 'content-length');
    return Number(contentLength ?? 0) > this.bodyBytesMax ? 'bodyTooLarge' : undefined;
  }
}
