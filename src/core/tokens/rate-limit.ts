import type { HeaderFields } from '../header-fields.ts';

/** The rate limit of each token: a burst of `requests`, refilled evenly within `windowSeconds`. */
export interface RateLimitPolicy {
  requests: number;
  windowSeconds: number;
}

/** Whether a request may go on, and the fields of its response. */
export type CountedRequest =
  | { kind: 'granted'; fields: HeaderFields }
  /** After this time, 1 or more, the token may certainly send another request. */
  | { kind: 'exceeded'; retryAfterSeconds: number; fields: HeaderFields };

/**
 * Limits how many requests each token may send. Each token has its own bucket. It is full at first,
 * and refills evenly. Rejected requests do not count.
 *
 * The fields are those of draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4.
 */
export class RateLimit {
  readonly #requests: number;
  readonly #perMs: number;
  readonly #policyField: string;
  /** What each token had left, and when. Only ids of stored tokens are keys, so it stays small. */
  readonly #buckets = new Map<number, { left: number; atMs: number }>();

  constructor({ requests, windowSeconds }: RateLimitPolicy) {
    this.#requests = requests;
    this.#perMs = requests / (windowSeconds * 1000);
    this.#policyField = `"default";q=${requests};w=${windowSeconds}`;
  }

  /** Counts one request of a token, if it is granted. @param nowMs on the monotonic clock */
  take(tokenId: number, nowMs: number): CountedRequest {
    const requests = this.#requests;
    const before = this.#buckets.get(tokenId) ?? { left: requests, atMs: nowMs };
    const available = Math.min(requests, before.left + (nowMs - before.atMs) * this.#perMs);
    const isGranted = available >= 1;
    const rest = isGranted ? available - 1 : available;
    this.#buckets.set(tokenId, { left: rest, atMs: nowMs });
    const left = Math.floor(rest);
    const nextMs = (left + 1 - rest) / this.#perMs;
    const retryAfterSeconds = Math.ceil(nextMs / 1000);
    const rateLimitField = `"default";r=${left};t=${retryAfterSeconds}`;
    const fields = ['RateLimit-Policy', this.#policyField, 'RateLimit', rateLimitField];
    return isGranted ? { kind: 'granted', fields } : { kind: 'exceeded', retryAfterSeconds, fields };
  }
}
