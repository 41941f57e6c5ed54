import { ERRORS } from '../contract/errors.ts';

/** The numbers of the error catalogue, as `error` of an answer has them. */
export type ErrorNumber = (typeof ERRORS)[keyof typeof ERRORS]['number'];

/**
 * What is said of one plant, by its content, so that others may fare better; every other error concerns all plants. 40001 is
 * among them, for a gateway that spoils bodies may spoil only some; and 50001, which one plant may meet each time.
 */
export const ERRORS_OF_ONE_PLANT: readonly (ErrorNumber | undefined)[] = [
  ERRORS.notJson.number,
  ERRORS.notNewPlant.number,
  ERRORS.idTaken.number,
  ERRORS.bodyTooLarge.number,
  ERRORS.internal.number,
];

/** Why a plant is not known to be stored. */
export class PlantStoreError extends Error {
  override readonly name = 'PlantStoreError';
  /** Number of the catalogue; undefined when no plant store answered. Of a plant that was never sent it is 40002. */
  readonly error: ErrorNumber | undefined;
  /** HTTP status of the answer; undefined when there was none. */
  readonly status: number | undefined;
  /**
   * What the network's error is called where no answer came and the runtime tells, such as `ECONNREFUSED`; `ETIMEDOUT`
   * when it took too long, `ECONNABORTED` when the client was closed.
   */
  readonly code: string | undefined;
  /** Whether the same plant may be taken later as it stands. */
  readonly canRetry: boolean;
  /** What the answer asked to be waited for before the next try, in ms; 0 when it asked for nothing. */
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

/** What the network says of a connection that never was, so that nothing was sent on it. */
const NOTHING_SENT: readonly (string | undefined)[] = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'];

/** Whether the try that failed so may have stored the plant. */
export function mayHaveStored({ status, code, canRetry }: PlantStoreError): boolean {
  return status === undefined ? canRetry && !NOTHING_SENT.includes(code) : status >= 500;
}

/** The error of a further try: what it says is true of that one alone, where one before it may have stored the plant. */
export function errorAfterUnknown(failed: PlantStoreError): PlantStoreError {
  if (mayHaveStored(failed)) return failed;
  const addition = 'an earlier try was not confirmed, so the plant may be stored all the same';
  return new PlantStoreError(`${failed.message}; ${addition}`, failed);
}

/** What a gateway before the service answers while the service is away (RFC 9110 section 15), and what asks for time. */
const STATUSES_THAT_PASS = [408, 429, 502, 503, 504];

/**
 * Reads an answer that is not 200. What is sent is valid HTTP, so error 40000 is about a request that was cut on its way, and
 * may pass. The body may be that of a gateway.
 */
export function errorOfResponse(
  status: number,
  retryAfter: string | undefined,
  body: string,
): PlantStoreError {
  const retryAfterMs = readRetryAfterMs(retryAfter);
  const { error, message } = jsonObject(body);
  const isErrorBody = Number.isInteger(error) && typeof message === 'string';
  const entry = isErrorBody && Object.values(ERRORS).find(({ number }) => number === error);
  if (entry) {
    const canRetry = entry.retry || entry === ERRORS.badHttp;
    return new PlantStoreError(String(message), { error: entry.number, status, canRetry, retryAfterMs });
  }
  const what = isErrorBody ? `: ${message}` : '';
  // A browser shows no status of a redirect that it was told not to follow.
  const response = status === 0 ? 'a redirect' : String(status);
  return new PlantStoreError(
    `the answer is ${response}${what}, which no plant store gives here; check the address`,
    { status: status || undefined, canRetry: STATUSES_THAT_PASS.includes(status), retryAfterMs },
  );
}

/** Reads the header Retry-After (RFC 9110 section 10.2.3): seconds, or a date. @returns ms from now; 0 without one */
export function readRetryAfterMs(text: string | undefined): number {
  if (text === undefined) return 0;
  const ms = /^[0-9]+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(ms, 0) : 0;
}

export function jsonObject(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
