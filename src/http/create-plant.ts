import { bearerToken } from '../auth/bearer.ts';
import type { TokenDirectory } from '../auth/token-directory.ts';
import type { ErrorName } from '../contract/errors.ts';
import { plantJson, readNewPlant } from '../contract/plant.ts';
import type { PlantKeeper } from '../store/plant-store.ts';
import { type Answer, errorAnswer, jsonAnswer } from './answer.ts';
import { fieldValues } from './header-fields.ts';
import { isJsonMediaType } from './media-type.ts';

/**
 * The operation `POST /plants`, in two steps, so that nothing of a body is read before the credential is accepted.
 * It knows no server: heads and bytes come in, answers go out.
 */
export class CreatePlant {
  readonly #tokens: Pick<TokenDirectory, 'holderOf' | 'knownHolderOf'>;
  readonly #keeper: PlantKeeper;
  /** A body that is longer is refused, by its head where it says so. */
  readonly bodyBytesMax: number;

  constructor(
    tokens: Pick<TokenDirectory, 'holderOf' | 'knownHolderOf'>,
    keeper: PlantKeeper,
    bodyBytesMax: number,
  ) {
    this.#tokens = tokens;
    this.#keeper = keeper;
    this.bodyBytesMax = bodyBytesMax;
  }

  /**
   * Decides by its head whether a request may send its body. When several faults apply, the first of credential,
   * media type and size is the one that is answered.
   *
   * @param rawHeaders names and values in turn, repeated fields included
   * @returns the id of the caller's token, or the answer that refuses
   */
  async admit(rawHeaders: readonly string[]): Promise<number | Answer> {
    const token = bearerToken(fieldValues(rawHeaders, 'authorization'));
    if (token === undefined) return errorAnswer('noCredential');
    const holder = await this.#tokens.holderOf(token);
    if (holder === undefined) return errorAnswer('credentialRefused');
    if (holder === 'storeUnavailable') {
      return errorAnswer(holder, 'the store does not answer, so the token cannot be checked; send it again');
    }
    const fault = this.#headFault(rawHeaders);
    return fault === undefined ? holder : errorAnswer(fault);
  }

  /** @returns the id of a token that is known to be in force; undefined for any other, which {@link admit} judges */
  knownHolder(tokenHash: string): number | undefined {
    return this.#tokens.knownHolderOf(tokenHash);
  }

  /** Reads the body, keeps the plant, and answers once it is durable. */
  async create(holder: number, body: Uint8Array): Promise<Answer> {
    const reading = readNewPlant(body);
    if (reading.plant === undefined) return errorAnswer(reading.error, reading.message);
    const { plant } = reading;
    const result = await this.#keeper.keep({ plant, recordedBy: holder });
    if (result.refused !== undefined) return errorAnswer(result.refused);
    const { outcome, revision } = result;
    const proof = [
      'Plant-Id',
      String(plant.id),
      'Plant-Revision',
      String(revision),
      'Plant-Outcome',
      outcome,
    ];
    return jsonAnswer(200, plantJson(plant), proof, outcome);
  }

  #headFault(rawHeaders: readonly string[]): ErrorName | undefined {
    if (fieldValues(rawHeaders, 'content-encoding').length > 0) return 'contentEncoding';
    const mediaTypes = fieldValues(rawHeaders, 'content-type');
    if (mediaTypes.length !== 1 || !isJsonMediaType(mediaTypes[0]!)) return 'notJsonMediaType';
    const [contentLength] = fieldValues(rawHeaders, 'content-length');
    return Number(contentLength ?? 0) > this.bodyBytesMax ? 'bodyTooLarge' : undefined;
  }
}
