/**
 * The three points at which an extra attaches to a service. The service is complete without any, and
 * calls all that are attached in their order. `src/extras.ts` lists the extras.
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
  /** `tokenHash` is that of a stored token. From here on, the request is one with that token. */
  | { kind: 'valid'; tokenHash: string }
  /** The response is 401. */
  | { kind: 'rejected'; message?: string }
  /** It could not find out. The response is 503. */
  | { kind: 'unchecked'; message: string };

/**
 * Validates bearer tokens that are not the service's own. A valid one leads to a stored token, which
 * decides everything else: revocation, rate limit, last use. So a verifier cannot make a request
 * valid whose stored token is revoked.
 */
export interface CredentialVerifier {
  /** Validates the token of a request that gets its response now. Never rejects. */
  verify(token: string, request: ReceivedRequest): Promise<Verification>;
  /**
   * As {@link verify}, but only from what was verified a short time ago: it runs for each create.
   *
   * @param tokenHash the SHA-256 of the bearer token
   * @returns the hash of the stored token; undefined: not known
   */
  verifiedHash(tokenHash: string): string | undefined;
  /** Called when the store rejects a token, for the log. Most are not those of a verifier. */
  onRejected(tokenHash: string, request: ReceivedRequest): void;
  /** Why valid tokens get errors now; undefined: they do not. */
  fault(): OperatorWarning | undefined;
}

/** Sees requests, commits and responses. It must be fast, and must not throw. */
export interface ResponseObserver {
  /** Called with each request when its header section was read. It may change `request.trace`. */
  received?(request: ReceivedRequest): void;
  /**
   * Called when a batch is given to the engine.
   *
   * @returns called when the batch has ended, whatever its result; undefined: nothing
   */
  committing?(writes: readonly PlantWrite[]): (() => void) | undefined;
  /**
   * Called with each response when it is written.
   *
   * @param request undefined: the received bytes were no request
   * @param addressOf returns the address of the client, which most responses need nowhere
   */
  responded(
    response: HttpResponse<string | Uint8Array>,
    request: ReceivedRequest | undefined,
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
 * Creates the plant of an admitted request whose body was read. The call itself queues the plant,
 * before it returns: so plants of a connection stay in their order.
 */
export type Create = (admission: Admission, reading: NewPlantReading) => Promise<HttpResponse>;

/** Stands between the server and the operation. With one, no request takes the short way of a plain create. */
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
