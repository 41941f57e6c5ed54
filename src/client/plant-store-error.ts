import { ERRORS } from '../core/contract/errors.ts';

/** The numbers of the error catalogue: the member `error` of an error response. */
export type ErrorNumber = (typeof ERRORS)[keyof typeof ERRORS]['number'];

/** Why a plant is not confirmed as stored. */
export class PlantStoreError extends Error {
  override readonly name: string = 'PlantStoreError';
  /** Number of the error catalogue, if a plant store responded. 40002 for an invalid input. */
  readonly error: ErrorNumber | undefined;
  /** HTTP status of the response; undefined without a response. */
  readonly status: number | undefined;
  /**
   * Code of the network error when no response arrived, such as `ECONNREFUSED`; `ETIMEDOUT` after a
   * timeout, `ECONNABORTED` when the client was closed. Undefined where the runtime gives no code.
   */
  readonly code: string | undefined;
  /** Whether the same plant, unchanged, may succeed later. */
  readonly canRetry: boolean;
  /** Delay that the response asked for with `Retry-After`, in ms; 0 without one. */
  readonly retryAfterMs: number;

  constructor(message: string, about: Partial<PlantStoreError> & { canRetry: boolean }) {
    super(message, { cause: about.cause });
    this.error = about.error;
    this.status = about.status;
    this.code = about.code;
    this.canRetry = about.canRetry;
    this.retryAfterMs = about.retryAfterMs ?? 0;
  }
}

/**
 * The plant was not stored, because its latest revision is not `ifRevision`, and has other content.
 *
 * A retry of the client never causes this: content that is already the latest is `unchanged`. If an
 * attempt was not confirmed, and another sender has replaced its content meanwhile, the plant may be
 * an earlier revision. Then the message mentions that attempt.
 */
export class PlantChanged extends PlantStoreError {
  override readonly name = 'PlantChanged';
  /** The `ifRevision` of the call. */
  readonly expectedRevision: number;
  /** The number of the latest revision; 0: there is no plant with this id. */
  readonly storedRevision: number;

  constructor(message: string, about: Pick<PlantChanged, 'expectedRevision' | 'storedRevision'>) {
    const { number, status, retry } = ERRORS.plantChanged;
    super(message, { error: number, status, canRetry: retry });
    this.expectedRevision = about.expectedRevision;
    this.storedRevision = about.storedRevision;
  }
}

/** Network errors of a connection that was never opened, so that no request was sent. */
export const NOTHING_SENT: readonly (string | undefined)[] = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'];

/** Whether the plant may be stored although the attempt failed with this error. */
export function mayHaveStored({ status, code, canRetry }: PlantStoreError): boolean {
  return status === undefined ? canRetry && !NOTHING_SENT.includes(code) : status >= 500;
}

/** Mentions in an error that an earlier attempt may have stored the plant. */
export function errorAfterUnknown(failed: PlantStoreError): PlantStoreError {
  if (mayHaveStored(failed)) return failed;
  const addition = 'an earlier attempt was not confirmed, so the plant may be stored';
  const message = `${failed.message}; ${addition}`;
  return failed instanceof PlantChanged
    ? new PlantChanged(message, failed)
    : new PlantStoreError(message, failed);
}

/** Statuses of a gateway whose service is unavailable (RFC 9110 section 15), or that limits rates. */
const GATEWAY_RETRY_STATUSES = [408, 429, 502, 503, 504];

/** Errors of a plant store whose address has a wrong path. */
const WRONG_PATH_ERRORS: readonly unknown[] = [ERRORS.noSuchPath, ERRORS.methodNotAllowed];

/**
 * Makes the error of a response other than 200. Its body may come from a gateway. Error 40000 is
 * transient: the client sends valid HTTP, so the request was truncated in transit.
 *
 * @param addressAdvice what to check if the address may be wrong
 */
export function errorOfResponse(
  status: number,
  retryAfter: string | undefined,
  body: string,
  addressAdvice: string,
): PlantStoreError {
  const retryAfterMs = readRetryAfterMs(retryAfter);
  const { error, message } = jsonObject(body);
  const isErrorBody = Number.isInteger(error) && typeof message === 'string';
  const entry = isErrorBody && Object.values(ERRORS).find(({ number }) => number === error);
  if (entry) {
    const canRetry = entry.retry || entry === ERRORS.badHttp;
    const advice = WRONG_PATH_ERRORS.includes(entry) ? `; ${addressAdvice}` : '';
    const about = { error: entry.number, status, canRetry, retryAfterMs };
    return new PlantStoreError(`${message}${advice}`, about);
  }
  const detail = isErrorBody ? `: ${message}` : '';
  // A browser hides the status of a redirect that it does not follow.
  const response = status === 0 ? 'a redirect' : String(status);
  return new PlantStoreError(
    `the response is ${response}${detail}; a plant store does not send this; ${addressAdvice}`,
    { status: status || undefined, canRetry: GATEWAY_RETRY_STATUSES.includes(status), retryAfterMs },
  );
}

/** Some servers send fractions, which RFC 9110 does not have. */
const SECONDS = /^[0-9]+(?:\.[0-9]+)?$/;
/** The start of an HTTP date (RFC 9110 section 5.6.7), which is in GMT even if it does not say so. */
const DAY_NAME = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/;

/**
 * Reads Retry-After (RFC 9110 section 10.2.3). `Date.parse` alone would read `32.5` as a date.
 *
 * @returns ms, always finite; 0 without a number and a date, or if the number is too large
 */
export function readRetryAfterMs(text = ''): number {
  const value = text.trim();
  if (SECONDS.test(value)) {
    const ms = Number(value) * 1000;
    return Number.isFinite(ms) ? ms : 0;
  }
  if (!DAY_NAME.test(value)) return 0;
  const date = Date.parse(value.endsWith(' GMT') ? value : `${value} GMT`);
  return Number.isNaN(date) ? 0 : Math.max(date - Date.now(), 0);
}

/** @returns the members of a JSON object; none if the text is other JSON or no JSON */
export function jsonObject(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
