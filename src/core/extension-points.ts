/**
 * The three points at which an extra attaches to a service. The service is complete without any,
 * and calls all that are attached in their order. `src/extras.ts` lists the extras.
 */
import type { PlantWrite } from './commit/plant-commits.ts';
import type { NewPlantReading } from './contract/plant.ts';
import type { HeaderFields } from './header-fields.ts';
import type { ReceivedRequest } from './request.ts';
import type { HttpResponse } from './response.ts';

/** What operators should know of an extra: one sentence, and what to do. */
export interface OperatorWarning {
  /** The name of the check of `/readyz`. */
  name: string;
  detail: string;
  advice: string;
}

/** What a verifier found. A `message` replaces that of the error catalogue. */
export type Verification =
  /** `tokenHash` is the hash of a stored token. The request counts as one with that token. */
  | { kind: 'valid'; tokenHash: string }
  /** The response is 401. */
  | { kind: 'rejected'; message?: string }
  /** The verifier could not validate the token. The response is 503. */
  | { kind: 'unchecked'; message: string };

/**
 * Validates bearer tokens that are not the service's own. A valid one leads to a stored token,
 * which decides everything else: revocation, rate limit, last use. So a verifier cannot make a
 * request valid whose stored token is revoked.
 */
export interface CredentialVerifier {
  /** Validates the token of a request that gets its response now. Never rejects. */
  verify(token: string, request: ReceivedRequest): Promise<Verification>;
  /**
   * Looks up a token that {@link verify} validated a short time ago. It runs for each create.
   *
   * @param tokenHash the SHA-256 of the bearer token
   * @returns the hash of the stored token; undefined if it was not validated lately
   */
  verifiedHash(tokenHash: string): string | undefined;
  /** Called when the store rejects a token, for the log. Most such tokens came from no verifier. */
  onRejected(tokenHash: string, request: ReceivedRequest): void;
  /** Explains why valid tokens get errors now; undefined if they do not. */
  fault(): OperatorWarning | undefined;
}

/** Sees requests, commits and responses. It must be fast, and must not throw. */
export interface ResponseObserver {
  /** Called with each request when its header section was read. It may change `request.trace`. */
  received?(request: ReceivedRequest): void;
  /**
   * Called when a batch is given to the engine.
   *
   * @returns a callback for the end of the batch, whatever its result; undefined if there is none
   */
  committing?(writes: readonly PlantWrite[]): (() => void) | undefined;
  /**
   * Called with each response when it is written.
   *
   * @param request undefined if the received bytes were no request
   * @param durationMs since the whole request arrived; 0 without a request
   * @param addressOf returns the address of the client, which few responses need
   */
  responded(
    response: HttpResponse<string | Uint8Array>,
    request: ReceivedRequest | undefined,
    durationMs: number,
    addressOf: () => string | undefined,
  ): void;
}

/** A request that its token and the rate limit allow. */
export interface Admission {
  tokenId: number;
  /** The hash of the stored token. */
  tokenHash: string;
  request: ReceivedRequest;
  /** Header fields of the response, whatever its status. */
  fields: HeaderFields;
}

/**
 * Creates the plant of an admitted request whose body was read. The call queues the plant before it
 * returns, so the plants of a connection keep their order.
 */
export type Create = (admission: Admission, reading: NewPlantReading) => Promise<HttpResponse>;

/** Stands between the server and the operation. With a wrapper, no request takes the fast path. */
export interface OperationWrapper {
  readonly warning: OperatorWarning;
  /** @returns what the server calls instead */
  wrap(create: Create): Create;
  /** Header fields to add to a response of the server, whatever its request was. */
  fieldsOf(response: HttpResponse<string | Uint8Array>): HeaderFields;
  /**
   * Called when the kernel has accepted a whole response for the client.
   *
   * @param isClientThere whether the client has not ended its side
   */
  onTaken(response: HttpResponse<string | Uint8Array>, isClientThere: boolean): void;
}

/** What is attached to a service. */
export interface Attached {
  verifiers: CredentialVerifier[];
  observers: ResponseObserver[];
  wrappers: OperationWrapper[];
}
