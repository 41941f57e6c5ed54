import type { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { readRetryAfterMs } from '../../src/client/plant-store-error.ts';
import { withoutToken } from '../../src/formats/visible-text.ts';
import { agentOf, type PostResponse, post } from './http-post.ts';

const ROUND_TRIP_TIMEOUT_MS = 10_000;
/** Longer response bodies are cut. A valid body is far shorter. */
const RESPONSE_MAX_BYTES = 1024 * 1024;
/** Tries of a request whose responses ask for a retry, and the longest delay between them. */
const TRIES_MAX = 5;
const RETRY_DELAY_MAX_MS = 10_000;
const RETRY_DELAY_MS = 1_000;
const SHOWN_BODY_LENGTH_MAX = 500;

export interface Server {
  plantsUrl: URL;
  token: string;
  stop: AbortSignal;
}

/** What the Authorization field of a request contains. */
export type Credential =
  | { kind: 'token'; scheme: string }
  | { kind: 'none' }
  | { kind: 'other'; text: string };

export interface TestRequest {
  /** `<ID>` is replaced by the plant id. */
  body: string;
  /** By default the token of the server. */
  credential?: Credential;
  /** By default application/json. */
  mediaType?: string;
  /** By default the body has a Content-Length. */
  framing?: 'chunked';
}

/** A complete response. */
export interface CompleteResponse extends PostResponse {
  kind: 'response';
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

/** The request could not be sent on the connection of an earlier one, as its response announced. */
export interface NotSent {
  kind: 'notSent';
  reason: string;
}

/** A request, and what arrived for it. */
export interface RoundTrip<Received = CompleteResponse | NoResponse> {
  /** The request as a report shows it, with `<ACCESS_TOKEN>` instead of the token. */
  sent: string;
  received: Received;
}

/** Sends a request on a new connection. */
export function send(server: Server, request: TestRequest, plantId: bigint): Promise<RoundTrip> {
  const agent = agentOf(server.plantsUrl, false);
  return repeated(server, () => sendOnce(server, request, plantId, agent));
}

/**
 * Repeats a request after a 429 (RFC 6585 section 4), and after a 503 with Retry-After (RFC 9110
 * section 15.6.4), because these responses say nothing about a rule.
 */
export async function repeated<Result extends RoundTrip<CompleteResponse | NoResponse | NotSent>>(
  { stop }: Server,
  sendRequest: () => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    const result = await sendRequest();
    const { received } = result;
    const delayMs = received.kind === 'response' ? retryDelayMs(received) : undefined;
    if (delayMs === undefined || tries === TRIES_MAX) return result;
    await sleep(delayMs, undefined, { signal: stop }).catch(() => {});
  }
}

/** @returns undefined if the response does not ask for a retry */
export function retryDelayMs({ status, headers }: CompleteResponse): number | undefined {
  const retryAfter = headers.get('retry-after') ?? undefined;
  if (status !== 429 && !(status === 503 && retryAfter)) return undefined;
  return Math.min(readRetryAfterMs(retryAfter) || RETRY_DELAY_MS, RETRY_DELAY_MAX_MS);
}

export async function sendOnce(
  { plantsUrl, token, stop }: Server,
  request: TestRequest,
  plantId: bigint,
  agent: Agent,
): Promise<RoundTrip> {
  const requestBody = Buffer.from(request.body.replaceAll('<ID>', String(plantId)));
  const headers = headersOf(request, requestBody.length, token);
  const sent = show(`POST ${plantsUrl.pathname}`, Object.entries(headers), requestBody, token);
  // Two chunks, since a body in one chunk is easier to read.
  const middle = request.framing === 'chunked' ? requestBody.length >> 1 : 0;
  const bodyParts = [requestBody.subarray(0, middle), requestBody.subarray(middle)];
  const timeout = AbortSignal.timeout(ROUND_TRIP_TIMEOUT_MS);
  const signal = AbortSignal.any([timeout, stop]);
  try {
    const response = await post(plantsUrl, {
      headers,
      bodyParts,
      responseBytesMax: RESPONSE_MAX_BYTES,
      signal,
      agent,
    });
    const { status, statusText, body } = response;
    const shown = show(`${status} ${statusText}`.trimEnd(), response.headers, body, token);
    return { sent, received: { kind: 'response', ...response, shown } };
  } catch (error) {
    const { name, message, code } = error as NodeJS.ErrnoException;
    const why = timeout.aborted ? `within ${ROUND_TRIP_TIMEOUT_MS / 1000} s` : `(${code ?? message})`;
    return {
      sent,
      received: { kind: 'noResponse', message: `no complete response ${why}`, code: code ?? name },
    };
  }
}

function headersOf(
  { credential = { kind: 'token', scheme: 'Bearer' }, mediaType = 'application/json', framing }: TestRequest,
  bodyBytes: number,
  token: string,
): Record<string, string> {
  const headers: Record<string, string> = {
    'User-Agent': 'plant-store-check',
    'Accept-Encoding': 'identity',
    'Content-Type': mediaType,
  };
  if (framing === 'chunked') headers['Transfer-Encoding'] = 'chunked';
  else headers['Content-Length'] = String(bodyBytes);
  if (credential.kind === 'token') headers.Authorization = `${credential.scheme} ${token}`;
  if (credential.kind === 'other') headers.Authorization = credential.text;
  return headers;
}

/** A message for a report: its headers, and the start of its body, without the token. */
function show(firstLine: string, headers: Iterable<[string, string]>, body: Buffer, token: string): string {
  const header = [firstLine, ...Array.from(headers, field => field.join(': '))].join('\n');
  // The token is removed before the cut, since a cut could split it.
  const text = withoutToken(body.toString(), token);
  const shown = text.length > SHOWN_BODY_LENGTH_MAX ? `${text.slice(0, SHOWN_BODY_LENGTH_MAX)}…` : text;
  return `${withoutToken(header, token)}\n\n${shown}`;
}
