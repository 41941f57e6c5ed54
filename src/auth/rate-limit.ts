/** What each token is granted: so many requests at once, and as many again in each window. */
export interface RateLimitPolicy {
  requests: number;
  windowSeconds: number;
}

/** Whether a request is granted, and what its answer says of that. */
interface Grant {
  isGranted: boolean;
  /** The token may send another request after so many seconds, if not sooner; 1 or more. */
  retryAfterSeconds: number;
  /** RateLimit-Policy and RateLimit, names and values in turn. */
  fields: readonly string[];
}

/**
 * Limits how many requests each token may send: a token bucket for each, which is full at first and fills up evenly. What
 * one token sends takes nothing from another. A request that is refused takes nothing either.
 *
 * The fields are those of draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4.
 */
export class RateLimit {
  readonly #requests: number;
  readonly #perMs: number;
  readonly #policyField: string;
  /**
   * How many requests a token had left, the part of the next one that had come back included, and when; ms, on the
   * monotonic clock. By the ids of tokens that the store has, so that there are no more of them than tokens.
   */
  readonly #buckets = new Map<number, { left: number; atMs: number }>();

  constructor({ requests, windowSeconds }: RateLimitPolicy) {
    this.#requests = requests;
    this.#perMs = requests / (windowSeconds * 1000);
    this.#policyField = `"default";q=${requests};w=${windowSeconds}`;
  }

  /**
   * Takes one request of a token.
   *
   * @param tokenId the id of a token that is in force
   * @param nowMs on the monotonic clock
   */
  take(tokenId: number, nowMs: number): Grant {
    const requests = this.#requests;
    const before = this.#buckets.get(tokenId) ?? { left: requests, atMs: nowMs };
    const came = Math.min(requests, before.left + (nowMs - before.atMs) * this.#perMs);
    const isGranted = came >= 1;
    const rest = isGranted ? came - 1 : came;
    this.#buckets.set(tokenId, { left: rest, atMs: nowMs });
    const left = Math.floor(rest);
    const nextMs = (left + 1 - rest) / this.#perMs;
    const retryAfterSeconds = Math.ceil(nextMs / 1000);
    const rateLimitField = `"default";r=${left};t=${retryAfterSeconds}`;
    return {
      isGranted,
      retryAfterSeconds,
      fields: ['RateLimit-Policy', this.#policyField, 'RateLimit', rateLimitField],
    };
  }
}
