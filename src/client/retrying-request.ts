import { ERRORS } from '../core/contract/errors.ts';
import { type NewPlant, newPlantJson } from '../core/contract/plant.ts';
import { errorAfterUnknown, mayHaveStored, PlantStoreError } from './plant-store-error.ts';
import { readStoredPlant, type StoredPlant } from './stored-plant.ts';
import {
  type HttpRequest,
  isProtocolError,
  type ReceivedResponse,
  type Transport,
  untrustedCertificate,
} from './transport.ts';

/** Delay before the first retry. It doubles with each attempt, up to the maximum. */
const RETRY_DELAY_MIN_MS = 100;
const RETRY_DELAY_MAX_MS = 2_000;
/** Longest `Retry-After` that the client follows. A longer one is cut to this value. */
export const RETRY_AFTER_MAX_MS = 60_000;
/** Longest delay of a timer: 2^31 - 1 ms, nearly 25 days. */
export const TIMER_MAX_MS = 2_147_483_647;
/** Bytes of a response beside the plant that it repeats. Far more than needed. */
const RESPONSE_MAX_BYTES = 64 * 1024;
/** Bytes of one character of a plant in a response: JSON may write it as `\u0000`. */
const RESPONSE_BYTES_PER_CHARACTER = 6;

/** A service, and how the client sends to it. */
export interface ClientState {
  transport: Transport;
  /** Address of `POST /plants`. */
  url: string;
  /** What to check if that address may be wrong. */
  addressAdvice: string;
  headers: HttpRequest['headers'];
  responseTimeoutMs: number;
  retryForMs: number;
  /** The calls that have not ended. */
  calls: Set<Call>;
  isClosed: boolean;
}

/**
 * State that the plants of one call share. Its sets take the place of an AbortSignal, which
 * searches all its listeners when one is added.
 */
export class Call {
  /** Called for each failed attempt that will be repeated. What it throws ends the request. */
  onRetry: ((error: PlantStoreError) => void) | undefined;
  /** When the last plant was stored or rejected, by `performance.now()`; 0 before. */
  lastSettledMs = 0;
  /** Why no further attempt begins. */
  stopped: { reason: unknown } | undefined;
  /** Called when the call is stopped. */
  readonly onStop = new Set<() => void>();
  /** Each ends one attempt in flight. */
  readonly inFlight = new Set<(reason: unknown) => void>();

  /** Begins no further attempt. The requests in flight may still get their responses. */
  stop(reason: unknown): void {
    if (this.stopped !== undefined) return;
    this.stopped = { reason };
    for (const listener of this.onStop) listener();
  }

  /** Also gives up the requests in flight. */
  abandon(reason: unknown): void {
    this.stop(reason);
    for (const abort of this.inFlight) abort(reason);
  }
}

/** Attempts per plant that may end with these errors. For other transient errors, time is the only limit. */
const ATTEMPTS_MAX = new Map<number | undefined, number>([
  [ERRORS.internal.number, 10],
  // A gateway truncates the client's requests.
  [ERRORS.badHttp.number, 5],
]);

/**
 * Sends one plant, and repeats the request after transient errors, for `retryForMs`. This time
 * starts again whenever another plant of the call is stored or rejected.
 *
 * @param ifRevision what the latest revision must be, if its content differs; undefined: any
 */
export async function sendPlant(
  service: ClientState,
  call: Call,
  plant: NewPlant,
  ifRevision: number | undefined,
): Promise<StoredPlant> {
  const startMs = performance.now();
  let isUnknown = false;
  const countedAttempts = new Map<number | undefined, number>();
  const throwIfStopped = (): void => {
    if (service.isClosed) throw closedError();
    if (call.stopped !== undefined) throw call.stopped.reason;
  };
  for (let attempts = 1; ; attempts++) {
    throwIfStopped();
    try {
      return await post(service, call, plant, ifRevision);
    } catch (error) {
      if (!(error instanceof PlantStoreError)) throw error;
      const withThisError = (countedAttempts.get(error.error) ?? 0) + 1;
      countedAttempts.set(error.error, withThisError);
      const delayMs = retryDelayMs(attempts, error.retryAfterMs);
      const endMs = Math.max(startMs, call.lastSettledMs) + service.retryForMs;
      if (
        !error.canRetry ||
        withThisError === ATTEMPTS_MAX.get(error.error) ||
        performance.now() + delayMs > endMs
      )
        throw isUnknown ? errorAfterUnknown(error) : error;
      isUnknown ||= mayHaveStored(error);
      throwIfStopped();
      call.onRetry?.(error);
      await sleep(call, delayMs);
    }
  }
}

/** Sends one attempt. An abort rejects it at once, even if the `fetch` ignores its signal. */
async function post(
  service: ClientState,
  { inFlight }: Call,
  plant: NewPlant,
  ifRevision: number | undefined,
): Promise<StoredPlant> {
  const { transport, url, addressAdvice, responseTimeoutMs } = service;
  const headers =
    ifRevision === undefined
      ? service.headers
      : { ...service.headers, 'If-Plant-Revision': String(ifRevision) };
  const body = newPlantJson(plant);
  const responseBytesMax = RESPONSE_MAX_BYTES + RESPONSE_BYTES_PER_CHARACTER * body.length;
  const aborter = new AbortController();
  let abort!: (reason: unknown) => void;
  const response = new Promise<ReceivedResponse>((resolve, reject) => {
    abort = reason => {
      reject(reason);
      aborter.abort();
    };
    transport({ url, headers, body, responseBytesMax }, aborter.signal).then(resolve, cause =>
      reject(noResponseError(url, cause)),
    );
  });
  inFlight.add(abort);
  const timer = setTimeout(() => {
    const message = `no response from ${url} within ${responseTimeoutMs} ms`;
    abort(new PlantStoreError(message, { code: 'ETIMEDOUT', canRetry: true }));
  }, responseTimeoutMs);
  try {
    return readStoredPlant(plant, ifRevision, await response, addressAdvice);
  } finally {
    inFlight.delete(abort);
    clearTimeout(timer);
  }
}

async function sleep({ stopped, onStop }: Call, ms: number): Promise<void> {
  // The `onRetry` callback may have stopped the call.
  if (stopped !== undefined) return;
  await new Promise<void>(resolve => {
    const end = (): void => {
      clearTimeout(timer);
      onStop.delete(end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    onStop.add(end);
  });
}

/** The error of each call of a closed client. */
export function closedError(): PlantStoreError {
  return new PlantStoreError('the client was closed', { code: 'ECONNABORTED', canRetry: false });
}

function noResponseError(url: string, cause: unknown): PlantStoreError {
  const code = codeOf(cause);
  const untrusted = untrustedCertificate(url, code);
  if (untrusted !== undefined) return new PlantStoreError(untrusted, { code, canRetry: false, cause });
  const tls = url.startsWith('https:') ? ' over TLS' : '';
  const why = isProtocolError(code)
    ? `; the server did not respond with HTTP${tls} (${code}); check the address`
    : `${code === undefined ? '' : ` (${code})`}; is the service running there?`;
  return new PlantStoreError(`no response from ${url}${why}`, { code, canRetry: true, cause });
}

/** Node's fetch throws a TypeError caused by the network error. Bun throws the network error. */
function codeOf(error: unknown): string | undefined {
  const { cause } = Object(error) as { cause?: unknown };
  const errors = [Object(cause), Object(error)] as { code?: unknown; name?: unknown }[];
  if (errors.some(({ name }) => name === 'HTTPParserError')) return 'EPROTO';
  const found = errors.map(({ code }) => code).find(code => typeof code === 'string');
  // undici, which is Node's fetch, uses this code when the server has closed the connection.
  return found === 'UND_ERR_SOCKET' ? 'ECONNRESET' : found;
}

/** @param attempts how many attempts have failed */
function retryDelayMs(attempts: number, retryAfterMs: number): number {
  const backoffMs = Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MIN_MS * 2 ** (attempts - 1));
  // Random jitter, so that plants rejected together are not sent again together.
  return Math.max(backoffMs, Math.min(retryAfterMs, RETRY_AFTER_MAX_MS)) * (1 + Math.random() / 4);
}
