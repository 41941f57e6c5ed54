import { fieldValues } from './header-fields.ts';
import { PREFLIGHT_MAX_AGE_SECONDS } from './limits.ts';
import { COMMON_FIELDS, type HttpResponse } from './response.ts';

/** Origins as a browser writes them, such as `https://plants.example`, or `*` for all. */
export type AllowedOrigins = readonly string[] | '*';

/** What a script may read besides the few fields that it always may. */
const EXPOSED =
  'Plant-Id, Plant-Revision, Plant-Outcome, Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, Link';

/**
 * The answer to a preflight. A `*` for the headers would not stand for Authorization. RFC 9110 section 8.6: with the
 * status 204 there is no Content-Length.
 */
const PREFLIGHT: HttpResponse = {
  result: 'other',
  status: 204,
  headers: [
    ...COMMON_FIELDS,
    ...['Access-Control-Allow-Methods', 'POST'],
    ...['Access-Control-Allow-Headers', 'authorization, content-type'],
    ...['Access-Control-Max-Age', String(PREFLIGHT_MAX_AGE_SECONDS)],
  ],
  body: '',
};

/**
 * Lets pages of other origins send plants from a browser: the CORS protocol of the Fetch standard
 * (https://fetch.spec.whatwg.org/#http-cors-protocol). Only a request with an Origin field gets its fields. That others
 * get no `Vary` harms nobody, since no cache may keep an answer.
 */
export class CrossOrigin {
  readonly #allowed: AllowedOrigins;

  constructor(allowed: AllowedOrigins) {
    this.#allowed = allowed;
  }

  /**
   * The fields that an answer gets in addition.
   *
   * @param rawHeaders of the request, names and values in turn
   */
  fieldsFor(rawHeaders: readonly string[]): string[] {
    const origins = fieldValues(rawHeaders, 'origin');
    if (origins.length === 0) return [];
    const vary = this.#allowed === '*' ? [] : ['Vary', 'Origin'];
    if (!this.#allows(origins)) return vary;
    const origin = this.#allowed === '*' ? '*' : origins[0]!;
    return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', EXPOSED, ...vary];
  }

  /**
   * Answers the question of a browser whether a page may `POST /plants`.
   *
   * @returns undefined for what is no such question, or comes from an origin that is not allowed
   */
  preflightResponse(method: string | undefined, rawHeaders: readonly string[]): HttpResponse | undefined {
    if (method !== 'OPTIONS' || fieldValues(rawHeaders, 'access-control-request-method').length === 0)
      return undefined;
    return this.#allows(fieldValues(rawHeaders, 'origin')) ? PREFLIGHT : undefined;
  }

  /** A browser sends one Origin; several are none that was allowed. */
  #allows(origins: readonly string[]): boolean {
    return origins.length === 1 && (this.#allowed === '*' || this.#allowed.includes(origins[0]!));
  }
}
