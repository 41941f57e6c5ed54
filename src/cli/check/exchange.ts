import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { readRetryAfterMs } from '../../client/retry-after.ts';
import { withoutToken } from '../visible-text.ts';
import { Finding } from './finding.ts';
import type { Target } from './target.ts';

/** From the first byte sent to the last byte of the answer. */
const EXCHANGE_WAIT_MS = 10_000;
/** A Plant or an Error as an answer to what the rules send is far smaller. */
const ANSWER_BYTES_MAX = 1024 * 1024;
/** A finding shows this much of a body, in UTF-16 code units. */
const SHOWN_BODY_LENGTH_MAX = 500;
/** An answer of 429 says nothing of a rule, so the request is sent again, so often and after so long at most. */
const RATE_LIMIT_TRIES_MAX = 5;
const RATE_LIMIT_WAIT_MS_MAX = 10_000;
const RATE_LIMIT_WAIT_MS_DEFAULT = 1_000;

/** What differs from an ordinary request; what is left out is a valid `POST /plants`. */
export interface RequestChanges {
  method?: string;
  /** Behind the base address; `/plants` otherwise. */
  path?: string;
  /** The whole request target, where it is not the path. */
  target?: string;
  /** Fields by name: a list is sent as so many fields, null takes out what would be sent otherwise. */
  headers?: Record<string, string | string[] | null>;
}

/** A request and its answer. */
export interface Exchange {
  /** Both as text, for a {@link Finding}; the token in them reads `<ACCESS_TOKEN>`. */
  sent: string;
  received: string;
  status: number;
  /** Names in lower case; values of one name joined by a comma, as RFC 9110 section 5.2 reads them. */
  headers: Map<string, string>;
  body: Buffer;
}

/**
 * Sends one request on a connection of its own, byte for byte as it is given, and reads the answer. One that the server
 * puts off with 429 (RFC 6585 section 4) is sent again.
 *
 * @param body the NewPlant as JSON, or what stands in its place
 * @throws {Finding} when no whole answer comes
 */
export async function send(
  target: Target,
  body: string | Uint8Array,
  changes: RequestChanges = {},
): Promise<Exchange> {
  for (let tries = 1; ; tries++) {
    const exchange = await sendOnce(target, Buffer.from(body), changes);
    if (exchange.status !== 429 || tries === RATE_LIMIT_TRIES_MAX) return exchange;
    const askedMs = readRetryAfterMs(exchange.headers.get('retry-after'));
    await wait(Math.min(askedMs || RATE_LIMIT_WAIT_MS_DEFAULT, RATE_LIMIT_WAIT_MS_MAX), undefined, {
      signal: target.stop,
    });
  }
}

async function sendOnce(target: Target, body: Buffer, changes: RequestChanges): Promise<Exchange> {
  const { plantsUrl, token } = target;
  const method = changes.method ?? 'POST';
  const path = changes.target ?? plantsUrl.pathname.replace(/\/plants$/, plants => changes.path ?? plants);
  const headers = fieldList({
    Host: plantsUrl.host,
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/json',
    'Content-Length': String(body.length),
    Connection: 'close',
    ...changes.headers,
  });
  const sent = show(`${method} ${path}`, headers, body, token);
  const deadline = AbortSignal.timeout(EXCHANGE_WAIT_MS);
  const signal = AbortSignal.any([deadline, target.stop]);
  try {
    const answer = await answerTo(plantsUrl, { method, path, headers, signal }, body);
    const answerBody = await readWhole(answer);
    // Nothing more is wanted of this connection, though the server may still wait for a body that was announced.
    answer.socket.destroy();
    const status = answer.statusCode!;
    return {
      sent,
      received: show(`${status} ${answer.statusMessage}`.trimEnd(), answer.rawHeaders, answerBody, token),
      status,
      headers: fieldMap(answer.rawHeaders),
      body: answerBody,
    };
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = deadline.aborted ? `within ${EXCHANGE_WAIT_MS / 1000} s` : `(${code ?? message})`;
    throw new Finding(`no whole answer came ${why}`, sent, undefined, { cause });
  }
}

function answerTo(
  url: URL,
  options: { method: string; path: string; headers: string[]; signal: AbortSignal },
  body: Buffer,
): Promise<IncomingMessage> {
  const start = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = start(url, { ...options, agent: false });
    request.on('response', resolve);
    // A server may answer and close before it has read everything; a fault behind the answer changes nothing.
    request.on('error', reject);
    request.end(body);
  });
}

async function readWhole(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > ANSWER_BYTES_MAX) throw new Error(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Names and values in turn: the one form in which Node repeats a field and adds none of its own. */
function fieldList(headers: Record<string, string | string[] | null>): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    (value === null ? [] : [value].flat()).flatMap(each => [name, each]),
  );
}

function fieldMap(rawHeaders: string[]): Map<string, string> {
  const fields = new Map<string, string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase();
    const value = rawHeaders[index + 1]!;
    fields.set(name, fields.has(name) ? `${fields.get(name)}, ${value}` : value);
  }
  return fields;
}

function show(firstLine: string, rawHeaders: string[], body: Buffer, token: string): string {
  const lines = [firstLine];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  }
  // Before the body is cut, which could leave half a token.
  const text = withoutToken(body.toString(), token);
  const shown = text.length > SHOWN_BODY_LENGTH_MAX ? `${text.slice(0, SHOWN_BODY_LENGTH_MAX)}…` : text;
  return `${withoutToken(lines.join('\n'), token)}\n\n${shown}`;
}
