/**
 * The points at which a service calls an extra: the members of {@link Attached}. The service is
 * complete without any extra, and calls those that are attached in their order. What an extra may use
 * of the service is the `ExtraContext` of `src/service.ts`. `src/extras.ts` lists the extras.
 */
import type { PlantWrite } from './commit/plant-commits.ts';
import type { NewPlantReading } from './contract/plant.ts';
import type { HeaderFields } from './header-fields.ts';
import type { Problem } from './problem.ts';
import type { ReceivedRequest } from './request.ts';
import type { HttpResponse } from './response.ts';

/** What operators should know of an extra. */
export interface OperatorWarning extends Problem {
  /** The name of the check of `/readyz`. */
  name: string;
}

/** What a validator found. A `message` replaces that of the error catalogue. */
export type CredentialValidation =
  /**
   * `storedHash` is the hash of a stored token. The request counts as one with that token.
   *
   * A validator may store a token itself, such as one for each subject. No client must be able to
   * send the text with that hash, because a stored token needs no validator. So the text must not be
   * a `b64token` (RFC 6750 section 2.1). `https://issuer.example alice` is none: it has a space.
   */
  | { kind: 'valid'; storedHash: string }
  /**
   * With a message, the response is 401. Without one, the next validator is asked, and the response is
   * 401 if none accepts the token.
   */
  | { kind: 'rejected'; message?: string }
  /** The token cannot be validated now. The response is 503. */
  | { kind: 'unchecked'; message: string };

/**
 * Validates bearer tokens that are not the service's own. It cannot make a request valid whose
 * stored token is revoked, because a valid bearer token only leads to a stored token. That one
 * decides everything else: revocation, rate limit, last use.
 */
export interface CredentialValidator {
  /** Validates the token of a request that gets its response now. Never rejects. */
  validate(token: string, request: ReceivedRequest): Promise<CredentialValidation>;
  /**
   * Looks up a token that {@link validate} accepted a short time ago. It runs for each create.
   *
   * @param bearerHash the SHA-256 of the bearer token
   * @returns the hash of the stored token; undefined if it was not accepted lately
   */
  storedHashOf(bearerHash: string): string | undefined;
  /** Called when the store rejects a token, for the log. Most such tokens came from no validator. */
  onRejected(storedHash: string, request: ReceivedRequest): void;
  /** Why valid tokens get errors now; undefined if they do not. */
  warning(): OperatorWarning | undefined;
}

/** Sees responses and batches, and changes nothing. It must be fast, and must not throw. */
export interface ResponseObserver {
  /**
   * Called with each response when it is written.
   *
   * @param request undefined if the received bytes were no request
   * @param durationMs since the whole request arrived; 0 without a request
   * @param addressOf returns the address of the client, which few observers need
   */
  responded(
    response: HttpResponse,
    request: ReceivedRequest | undefined,
    durationMs: number,
    addressOf: (request: ReceivedRequest | undefined) => string | undefined,
  ): void;
  /**
   * Called when a batch has ended, whatever its result, and before its responses.
   *
   * @param writes the `origin` of each is its request
   * @param beganAt ms on the monotonic clock
   */
  batchEnded?(writes: readonly PlantWrite[], beganAt: number): void;
}

/** Decides which trace log lines name for a request. */
export interface TraceSource {
  /**
   * Called whenever a line of the log names the request, so also while it has no response yet. It
   * must be fast, must not throw, and must return the same for each call with a request.
   *
   * @returns the trace id in hexadecimal, in lower case; undefined if this source has no trace of the
   *   request: then the next one is asked, and after all of them, the trace is that of the caller
   */
  traceIdOf(request: ReceivedRequest): string | undefined;
}

/** A request that its token and the rate limit allow. */
export interface Admission {
  kind: 'admitted';
  tokenId: number;
  /** The hash of the stored token. */
  storedHash: string;
  request: ReceivedRequest;
  /** As `ifRevision` of a write. */
  ifRevision: number | undefined;
  /** Header fields of the response, whatever its status. */
  fields: HeaderFields;
}

/**
 * Creates the plant of an admitted request whose body was parsed. The call queues the plant before
 * it returns, so the plants of a connection keep their order.
 */
export type CreateStep = (admission: Admission, reading: NewPlantReading) => Promise<HttpResponse>;

/**
 * Changes what the operation does with admitted requests, and how its responses are delivered
 * (`Delivery`). With a wrapper, there are no plain creates.
 */
export interface OperationWrapper {
  readonly warning: OperatorWarning;
  /** @returns what the operation calls instead; it must queue a plant before its first await */
  wrap(create: CreateStep): CreateStep;
}

/** What is attached to a service. */
export interface Attached {
  validators: CredentialValidator[];
  observers: ResponseObserver[];
  traceSources: TraceSource[];
  wrappers: OperationWrapper[];
}
