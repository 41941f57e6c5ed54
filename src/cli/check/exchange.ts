import { setTimeout as wait } from 'node:timers/promises';
import { readBody } from '../../client/fetch-transport.ts';
import { readRetryAfterMs } from '../../client/plant-store-error.ts';
import { withoutToken } from '../output/visible-text.ts';

const EXCHANGE_TIMEOUT_MS = 10_000;
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

export interface TestRequest {
  /** `<ID>` is replaced by the plant id. */
  body: string;
  /** The Authorization field; undefined: Bearer with the token; null: no field. */
  authorization?: string | null;
  mediaType?: string;
}

/** A request and its response. The texts have `<ACCESS_TOKEN>` instead of the token. */
export interface Exchange {
  sent: string;
  received?: string;
  /** 0: no complete response arrived. */
  status: number;
  headers: Headers;
  body: Buffer;
  /** Why no complete response arrived, and the code of a network error. */
  failure?: { message: string; code?: string | undefined };
}

/**
 * Sends a request, and again after 429 (RFC 6585 section 4) or 503 with Retry-After (RFC 9110
 * section 15.6.4): these responses say nothing about a rule.
 */
export async function send(server: Server, request: TestRequest, plantId: bigint): Promise<Exchange> {
  for (let tries = 1; ; tries++) {
    const exchange = await sendOnce(server, request, plantId);
    const retryAfter = exchange.headers.get('retry-after') ?? undefined;
    const asksForRetry = exchange.status === 429 || (exchange.status === 503 && retryAfter);
    if (!asksForRetry || tries === TRIES_MAX) return exchange;
    const delayMs = Math.min(readRetryAfterMs(retryAfter) || RETRY_DELAY_MS, RETRY_DELAY_MS_MAX);
    await wait(delayMs, undefined, { signal: server.stop }).catch(() => {});
  }
}

async function sendOnce(server: Server, request: TestRequest, plantId: bigint): Promise<Exchange> {
  const { plantsUrl, token, stop } = server;
  const requestBody = Buffer.from(request.body.replaceAll('<ID>', String(plantId)));
  const { authorization = `Bearer ${token}`, mediaType = 'application/json' } = request;
  const requestHeaders = new Headers({ 'Content-Type': mediaType, Connection: 'close' });
  if (authorization !== null) requestHeaders.set('Authorization', authorization);
  const sent = show(`POST ${plantsUrl.pathname}`, requestHeaders, requestBody, token);
  const timeout = AbortSignal.timeout(EXCHANGE_TIMEOUT_MS);
  try {
    const { status, statusText, headers, body } = await fetch(plantsUrl, {
      method: 'POST',
      headers: requestHeaders,
      body: requestBody,
      redirect: 'manual',
      signal: AbortSignal.any([timeout, stop]),
    });
    const received = Buffer.concat(await readBody(body, RESPONSE_BYTES_MAX));
    const shown = show(`${status} ${statusText}`.trimEnd(), headers, received, token);
    return { sent, received: shown, status, headers, body: received };
  } catch (error) {
    const { cause = error } = error as { cause?: unknown };
    const { name, message, code } = cause as NodeJS.ErrnoException;
    const why = timeout.aborted ? `within ${EXCHANGE_TIMEOUT_MS / 1000} s` : `(${code ?? message})`;
    return {
      sent,
      status: 0,
      headers: new Headers(),
      body: Buffer.alloc(0),
      failure: { message: `no complete response ${why}`, code: code ?? name },
    };
  }
}

function show(firstLine: string, headers: Iterable<[string, string]>, body: Buffer, token: string): string {
  const header = [firstLine, ...Array.from(headers, field => field.join(': '))].join('\n');
  // The token is removed before the cut, since a cut could split it.
  const text = withoutToken(body.toString(), token);
  const shown = text.length > SHOWN_BODY_LENGTH_MAX ? `${text.slice(0, SHOWN_BODY_LENGTH_MAX)}…` : text;
  return `${withoutToken(header, token)}\n\n${shown}`;
}
