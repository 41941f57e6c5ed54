import { bearerToken } from '../auth/bearer.ts';
import type { RateLimit } from '../auth/rate-limit.ts';
import { TokenHashes } from '../auth/token.ts';
import type { TokenDirectory } from '../auth/token-directory.ts';
import type { ErrorName } from '../contract/errors.ts';
import { type NewPlantReading, plantJson, readNewPlant } from '../contract/plant.ts';
import type { PlantKeeper } from '../store/plant-store.ts';
import { type Answer, errorAnswer, jsonAnswer } from './answer.ts';
import { fieldValues, isJsonMediaType } from './header-fields.ts';
import { SHORT_BODY_BYTES_MAX } from './limits.ts';
import { LongBodies } from './long-bodies.ts';

/** A request that may send its body. */
export interface Admission {
  /** Of the caller's token. */
  tokenHash: string;
  /** The id of that token. */
  holder: number;
  /** Header fields for the answer, whatever it is; names and values in turn. */
  fields: readonly string[];
}

/**
 * The operation `POST /plants`, in two steps, so that nothing of a body is read before the credential is accepted.
 * It knows no server: heads and bytes come in, answers go out.
 */
export class CreatePlant {
  readonly #tokenHashes = new TokenHashes();
  readonly #tokens: TokenDirectory;
  readonly #keeper: PlantKeeper;
  /** A body that is longer is refused, by its head where it says so. */
  readonly bodyBytesMax: number;
  readonly #rateLimit: RateLimit | undefined;
  readonly #longBodies = new LongBodies();

  /** @param rateLimit of each token; undefined for none */
  constructor(tokens: TokenDirectory, keeper: PlantKeeper, bodyBytesMax: number, rateLimit?: RateLimit) {
    this.#tokens = tokens;
    this.#keeper = keeper;
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
  async admit(rawHeaders: readonly string[]): Promise<Admission | Answer> {
    const token = bearerToken(fieldValues(rawHeaders, 'authorization'));
    if (token === undefined) return errorAnswer('noCredential');
    const tokenHash = this.#tokenHashes.of(token);
    if (tokenHash === undefined) return errorAnswer('credentialRefused');
    const holder = await this.#tokens.holderOf(tokenHash);
    if (holder === undefined) return errorAnswer('credentialRefused');
    if (holder === 'storeUnavailable')
      return errorAnswer(holder, 'the store does not answer, so the token cannot be checked; send it again');
    const admission = this.#count(holder);
    if ('status' in admission) return admission;
    const fault = this.#headFault(rawHeaders);
    return fault === undefined
      ? { ...admission, tokenHash }
      : errorAnswer(fault, undefined, admission.fields);
  }

  /** @returns the id of a token that is known to be in force; undefined for any other */
  knownHolder(tokenHash: string): number | undefined {
    return this.#tokens.knownHolderOf(tokenHash);
  }

  /** As {@link read} and {@link create}, for a whole request with a short body whose head is known to be without fault. */
  async createOrdinary(holder: number, body: Uint8Array): Promise<Answer> {
    const admission = this.#count(holder);
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
  async create({ holder, fields }: Omit<Admission, 'tokenHash'>, reading: NewPlantReading): Promise<Answer> {
    if (reading.plant === undefined) return errorAnswer(reading.error, reading.message, fields);
    const { plant } = reading;
    const result = await this.#keeper.keep({ plant, recordedBy: holder });
    if (result.refused !== undefined) return errorAnswer(result.refused, undefined, fields);
    const { outcome, revision } = result;
    const proof = ['Plant-Id', `${plant.id}`, 'Plant-Revision', `${revision}`, 'Plant-Outcome', outcome];
    return jsonAnswer(200, plantJson(plant), [...proof, ...fields], outcome);
  }

  /** Counts a request against what its token is granted. */
  #count(holder: number): Omit<Admission, 'tokenHash'> | Answer {
    if (this.#rateLimit === undefined) return { holder, fields: [] };
    const { isGranted, retryAfterSeconds, fields } = this.#rateLimit.take(holder, performance.now());
    if (isGranted) return { holder, fields };
    return errorAnswer('tooManyRequests', undefined, ['Retry-After', String(retryAfterSeconds), ...fields]);
  }

  #headFault(rawHeaders: readonly string[]): ErrorName | undefined {
    if (fieldValues(rawHeaders, 'content-encoding').length > 0) return 'contentEncoding';
    const mediaTypes = fieldValues(rawHeaders, 'content-type');
    if (mediaTypes.length !== 1 || !isJsonMediaType(mediaTypes[0]!)) return 'notJsonMediaType';
    const [contentLength] = fieldValues(rawHeaders, 'content-length');
    return Number(contentLength ?? 0) > this.bodyBytesMax ? 'bodyTooLarge' : undefined;
  }
}
