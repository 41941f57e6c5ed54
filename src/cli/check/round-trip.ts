import { setTimeout as sleep } from 'node:timers/promises';
import { readBody } from '../../client/fetch-transport.ts';
import { readRetryAfterMs } from '../../client/plant-store-error.ts';
import { withoutToken } from '../output/visible-text.ts';

const ROUND_TRIP_TIMEOUT_MS = 10_000;
/** Longer response bodies are cut. A valid body is far shorter. */
const RESPONSE_BYTES_MAX = 1024 * 1024;
/** Tries of a request whose responses ask for a retry, and the longest delay between them. */
const TRIES_MAX = 5;
const RETRY_DELAY_MS_MAX = 10_000;
const RETRY_DELAY_MS = 1_000;
const SHOWN_BODY_LENGTH_MAX = 500;

export interface Server {
  plantsUrl: URL;
  token: string;
  stop: AbortSignal;
}

/** What the Authorization field of a request contains. */
export type Credential = { kind: 'token' } | { kind: 'none' } | { kind: 'other'; text: string };

export interface TestRequest {
  /** `<ID>` is replaced by the plant id. */
  body: string;
  /** By default the token of the server. */
  credential?: Credential;
  /** By default application/json. */
  mediaType?: string;
}

/** A complete response. */
export interface CompleteResponse {
  kind: 'response';
  status: number;
  headers: Headers;
  body: Buffer;
  /** The response as a report shows it. */
  shown: string;
}

/** No complete response arrived. */
export interface NoResponse {
  kind: 'noResponse';
  message: string;
  /** The code of the network error, or else its name. */
  code: string;
}

/** A request that was sent, and what arrived for it. */
export interface RoundTrip {
  /** The request as a report shows it, with `<ACCESS_TOKEN>` instead of the token. */
  sent: string;
  received: CompleteResponse | NoResponse;
}

/**
 * Sends a request. It repeats the request after a 429 (RFC 6585 section 4), and after a 503 with
 * Retry-After (RFC 9110 section 15.6.4), because these responses say nothing about a rule.
 */
export async function send(server: Server, request: TestRequest, plantId: bigint): Promise<RoundTrip> {
  for (let tries = 1; ; tries++) {
    const roundTrip = await sendOnce(server, request, plantId);
    const { received } = roundTrip;
    if (received.kind === 'noResponse' || tries === TRIES_MAX) return roundTrip;
    const retryAfter = received.headers.get('retry-after') ?? undefined;
    if (received.status !== 429 && !(received.status === 503 && retryAfter)) return roundTrip;
    const delayMs = Math.min(readRetryAfterMs(retryAfter) || RETRY_DELAY_MS, RETRY_DELAY_MS_MAX);
    await sleep(delayMs, undefined, { signal: server.stop }).catch(() => {});
  }
}

async function sendOnce(server: Server, request: TestRequest, plantId: bigint): Promise<RoundTrip> {
  const { plantsUrl, token, stop } = server;
  const requestBody = Buffer.from(request.body.replaceAll('<ID>', String(plantId)));
  const { credential = { kind: 'token' }, mediaType = 'application/json' } = request;
  const requestHeaders = new Headers({ 'Content-Type': mediaType, Connection: 'close' });
  if (credential.kind === 'token') requestHeaders.set('Authorization', `Bearer ${token}`);
  if (credential.kind === 'other') requestHeaders.set('Authorization', credential.text);
  const sent = show(`POST ${plantsUrl.pathname}`, requestHeaders, requestBody, token);
  const timeout = AbortSignal.timeout(ROUND_TRIP_TIMEOUT_MS);
  try {
    const { status, statusText, headers, body } = await fetch(plantsUrl, {
      method: 'POST',
      headers: requestHeaders,
      body: requestBody,
      redirect: 'manual',
      signal: AbortSignal.any([timeout, stop]),
    });
    const bytes = Buffer.concat(await readBody(body, RESPONSE_BYTES_MAX));
    const shown = show(`${status} ${statusText}`.trimEnd(), headers, bytes, token);
    return { sent, received: { kind: 'response', status, headers, body: bytes, shown } };
  } catch (error) {
    const { cause = error } = error as { cause?: unknown };
    const { name, message, code } = cause as NodeJS.ErrnoException;
    const why = timeout.aborted ? `within ${ROUND_TRIP_TIMEOUT_MS / 1000} s` : `(${code ?? message})`;
    return {
      sent,
      received: { kind: 'noResponse', message: `no complete response ${why}`, code: code ?? name },
    };
  }
}

/** A message for a report: its headers, and the start of its body, without the token. */
function show(firstLine: string, headers: Iterable<[string, string]>, body: Buffer, token: string): string {
  const header = [firstLine, ...Array.from(headers, field => field.join(': '))].join('\n');
  // The token is removed before the cut, since a cut could split it.
  const text = withoutToken(body.toString(), token);
  const shown = text.length > SHOWN_BODY_LENGTH_MAX ? `${text.slice(0, SHOWN_BODY_LENGTH_MAX)}…` : text;
  return `${withoutToken(header, token)}\n\n${shown}`;
}
