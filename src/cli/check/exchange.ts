import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { readRetryAfterMs } from '../../client/plant-store-error.ts';
import { withoutToken } from '../visible-text.ts';
import {
  EXCHANGE_TIMEOUT_MS,
  RATE_LIMIT_DELAY_MS,
  RATE_LIMIT_DELAY_MS_MAX,
  RATE_LIMIT_TRIES_MAX,
  RESPONSE_BYTES_MAX,
  SHOWN_BODY_LENGTH_MAX,
} from './limits.ts';
import { Finding, type Target } from './rule.ts';

/** The text of a NewPlant. @param id text of the id; `<ID>` is replaced by the id of the rule */
export function withId(id: bigint | string, name = 'A'): string {
  return `{"id":${id},"name":"${name}"}`;
}

export const PLANT = withId('<ID>');

/**
 * Differences from the header section of a valid `POST /plants`, by field name. A list is sent as
 * several fields, null removes a field. `<ACCESS_TOKEN>` is replaced by the token.
 */
export interface RequestChanges {
  [field: string]: string | string[] | null;
  ':method'?: string;
  /** Path after the base address. `<PLANTS_URL>`: the absolute form (RFC 9112 section 3.2.2). */
  ':path'?: string;
}

export interface Exchange {
  /** Texts for a {@link Finding}, with `<ACCESS_TOKEN>` instead of the token. */
  sent: string;
  received: string;
  status: number;
  /** Names in lower case. Values of one name are joined by a comma (RFC 9110 section 5.2). */
  headers: Map<string, string>;
  body: Buffer;
}

/**
 * Sends the exact bytes of one request on a new connection and reads the response. After 429 (RFC
 * 6585 section 4) or 503 with Retry-After (RFC 9110 section 15.6.4), it sends the request again.
 * These responses say nothing about a rule.
 *
 * @param text the body; `<ID>` is replaced by the id of the rule
 * @throws {Finding} if no complete response arrives
 */
export async function send(
  target: Target,
  text = PLANT,
  changes: RequestChanges = {},
  encoding: BufferEncoding = 'utf8',
): Promise<Exchange> {
  const body = Buffer.from(text.replaceAll('<ID>', String(target.id)), encoding);
  for (let tries = 1; ; tries++) {
    const exchange = await sendOnce(target, body, changes);
    const { status, headers } = exchange;
    const asksForRetry = status === 429 || (status === 503 && headers.has('retry-after'));
    if (!asksForRetry || tries === RATE_LIMIT_TRIES_MAX) return exchange;
    const askedMs = readRetryAfterMs(headers.get('retry-after'));
    const delayMs = Math.min(askedMs || RATE_LIMIT_DELAY_MS, RATE_LIMIT_DELAY_MS_MAX);
    await wait(delayMs, undefined, { signal: target.stop });
  }
}

async function sendOnce(
  { plantsUrl, token, stop }: Target,
  body: Buffer,
  { ':method': method = 'POST', ':path': path = '/plants', ...fieldChanges }: RequestChanges,
): Promise<Exchange> {
  const fields = {
    Host: plantsUrl.host,
    Authorization: 'Bearer <ACCESS_TOKEN>',
    'Content-Type': 'application/json',
    'Content-Length': String(body.length),
    Connection: 'close',
    ...fieldChanges,
  };
  // A flat list of names and values: with it, Node can repeat a field and adds no field.
  const headers = Object.entries(fields).flatMap(([name, values]) =>
    [values ?? []].flat().flatMap(value => [name, value.replace('<ACCESS_TOKEN>', token)]),
  );
  const requestTarget =
    path === '<PLANTS_URL>' ? plantsUrl.href : plantsUrl.pathname.replace(/\/plants$/, () => path);
  const sent = show(`${method} ${requestTarget}`, headers, body, token);
  const timeout = AbortSignal.timeout(EXCHANGE_TIMEOUT_MS);
  const signal = AbortSignal.any([timeout, stop]);
  const start = plantsUrl.protocol === 'https:' ? httpsRequest : httpRequest;
  try {
    const request = start(plantsUrl, { method, path: requestTarget, headers, signal, agent: false });
    // A server may respond and close the connection before it has read the body. Ignore that error.
    request.on('error', () => {}).end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const responseBody = await readWhole(response);
    // Ends the connection also if the server still waits for the rest of a body.
    response.socket.destroy();
    const { statusCode, statusMessage, rawHeaders, headersDistinct } = response;
    return {
      sent,
      received: show(`${statusCode} ${statusMessage}`.trimEnd(), rawHeaders, responseBody, token),
      status: statusCode!,
      headers: new Map(Object.entries(headersDistinct).map(([name, values]) => [name, values!.join(', ')])),
      body: responseBody,
    };
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = timeout.aborted ? `within ${EXCHANGE_TIMEOUT_MS / 1000} s` : `(${code ?? message})`;
    throw new Finding(`no complete response ${why}`, sent, undefined, { cause });
  }
}

async function readWhole(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > RESPONSE_BYTES_MAX) throw new Error(`the response exceeds ${RESPONSE_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function show(firstLine: string, rawHeaders: string[], body: Buffer, token: string): string {
  const lines = [firstLine];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  }
  // Before the body is cut: the cut could split a token, which would then stay.
  const text = withoutToken(body.toString(), token);
  const shown = text.length > SHOWN_BODY_LENGTH_MAX ? `${text.slice(0, SHOWN_BODY_LENGTH_MAX)}…` : text;
  return `${withoutToken(lines.join('\n'), token)}\n\n${shown}`;
}
