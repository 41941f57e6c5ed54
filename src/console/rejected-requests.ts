import { ERRORS, type ErrorBody } from '../contract/errors.ts';
import { isErrorName } from '../contract/result.ts';
import type { HttpResponse, ReceivedRequest } from '../http/response.ts';
import { REJECTED_BODY_BYTES_MAX, REJECTED_MAX } from './limits.ts';

interface RejectedRequest {
  at: number;
  tokenId: number | undefined;
  status: number;
  error: number;
  message: string;
  path: string;
  /** The first bytes of the body. */
  body: Uint8Array | undefined;
  bodyBytes: number;
}

const CHARACTER_BYTES_MAX = 4;
/** The form of our tokens. A client may send one in the wrong place. */
const TOKEN = /plant_[0-9A-Za-z]{8,}/g;

/** The last rejected requests, while an operator wants to see them. In memory only. */
export class RejectedRequests {
  readonly #requests: RejectedRequest[] = [];
  /** Milliseconds since 1970. */
  #until = 0;

  /** Undefined while nothing is recorded. */
  get until(): number | undefined {
    return Date.now() < this.#until ? this.#until : undefined;
  }

  /** @param minutes 0: stops, and forgets what was recorded */
  record(minutes: number): void {
    if (minutes === 0) this.#requests.length = 0;
    const until = Date.now() + minutes * 60_000;
    // The open screen asks for short times. They do not shorten an hour.
    this.#until = minutes === 0 ? 0 : Math.max(until, this.#until);
  }

  /** Is called with every response, so it does nothing while nothing is recorded. */
  observe(response: HttpResponse<string | Uint8Array>, request: ReceivedRequest | undefined): void {
    if (this.#until === 0 || !isErrorName(response.result) || this.until === undefined) return;
    const { message } = JSON.parse(String(response.body)) as ErrorBody;
    const { method = 'POST', url = '/plants' } = request?.request ?? {};
    const { status, number: error } = ERRORS[response.result];
    this.#requests.unshift({
      ...{ at: Date.now(), tokenId: request?.tokenId, status, error, message },
      path: request === undefined ? '' : withoutTokens(`${method} ${url}`).slice(0, REJECTED_BODY_BYTES_MAX),
      // A copy: the rest of a large buffer is not kept.
      body: request?.body && Uint8Array.from(request.body.subarray(0, REJECTED_BODY_BYTES_MAX)),
      bodyBytes: request?.bodyBytes ?? 0,
    });
    if (this.#requests.length > REJECTED_MAX) this.#requests.pop();
  }

  /** The newest first, for the page. */
  list(labelOf: (tokenId: number) => string | undefined) {
    return this.#requests.map(({ tokenId, body, ...request }) => ({
      ...request,
      label: (tokenId !== undefined && labelOf(tokenId)) || null,
      ...(body === undefined ? { body: null, faultAt: null } : shownBody(body, request)),
    }));
  }
}

function shownBody(
  bytes: Uint8Array,
  { error, bodyBytes }: { error: number; bodyBytes: number },
): { body: string; faultAt: number | null } {
  const fault = faultIn(bytes, error);
  // Where the kept part ends, no fault can be seen.
  const isSeen =
    fault !== undefined && (bytes.length === bodyBytes || fault < bytes.length - CHARACTER_BYTES_MAX);
  const before = isSeen ? escaped(bytes.subarray(0, fault)) : undefined;
  // The part before the fault alone could contain half a token.
  const body = withoutTokens(escaped(bytes));
  return { body, faultAt: before !== undefined && body.startsWith(before) ? before.length : null };
}

/** Text of UTF-8. Other bytes and control characters, but not line ends, are `\xHH`. */
function escaped(bytes: Uint8Array): string {
  let text = '';
  for (let start = 0; start < bytes.length; ) {
    const end = start + characterLength(bytes, start);
    const isShown = end > start && (bytes[start]! >= 0x20 || bytes[start] === 0x0a) && bytes[start] !== 0x7f;
    text += isShown ? Buffer.from(bytes.subarray(start, end)).toString() : hex(bytes[start]!);
    start = isShown ? end : start + 1;
  }
  return text;
}

function hex(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, '0')}`;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Bytes of the character of UTF-8 (RFC 3629 section 3) that begins here; 0 if there is none. */
function characterLength(bytes: Uint8Array, start: number): number {
  const first = bytes[start]!;
  if (first < 0x80) return 1;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  try {
    utf8.decode(bytes.subarray(start, start + length));
    return length;
  } catch {
    return 0;
  }
}

/** The index of the byte at which a body is wrong, if that is known. */
function faultIn(bytes: Uint8Array, error: number): number | undefined {
  for (let at = 0; at < bytes.length; ) {
    const length = characterLength(bytes, at);
    if (length === 0) return at;
    at += length;
  }
  if (error !== ERRORS.notJson.number) return undefined;
  const text = utf8.decode(bytes);
  const at = jsonFault(text);
  return at === undefined ? undefined : Buffer.byteLength(text.slice(0, at));
}

/** The index of the first character that makes a text invalid JSON. */
function jsonFault(text: string): number | undefined {
  const message = parseError(text);
  if (message === undefined) return undefined;
  const position = / at position ([0-9]+)/.exec(message)?.[1];
  if (position !== undefined) return Number(position);
  if (!message.startsWith('Unexpected token')) return text.length;
  // V8 names no position here. Only texts that contain the token have this error.
  let [valid, invalid] = [0, text.length];
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >> 1;
    if (parseError(text.slice(0, middle))?.startsWith('Unexpected token')) invalid = middle;
    else valid = middle;
  }
  return valid;
}

function parseError(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function withoutTokens(text: string): string {
  return text.replace(TOKEN, 'plant_…');
}
