import { isUtf8 } from 'node:buffer';
import { ERRORS, type ErrorBody } from '../contract/errors.ts';
import { readJson, readToEnd } from '../contract/json-reader.ts';
import { isErrorName } from '../contract/result.ts';
import type { HttpResponse, ReceivedRequest } from '../http/response.ts';
import { REJECTED_BODY_BYTES_MAX, REJECTED_MAX } from './limits.ts';

interface RejectedRequest {
  /** The page tells requests apart by it. */
  id: number;
  /** Milliseconds since 1970. */
  at: number;
  tokenId: number | undefined;
  status: number;
  error: number;
  message: string;
  /** Method and target; undefined if no whole request arrived. */
  requestLine: string | undefined;
  /** The first bytes of the body; undefined if it was not read. */
  body: Uint8Array | undefined;
  bodyBytes: number;
  shown?: ShownBody;
}

interface ShownBody {
  body: string | null;
  /** Whether the body is longer. */
  isCut: boolean;
  /** The index at which the text is wrong; null if that is not known. */
  faultAt: number | null;
}

/** The last rejected requests, while an operator wants to see them. In memory only. */
export class RejectedRequests {
  readonly #requests: RejectedRequest[] = [];
  #lastId = 0;
  /** Milliseconds since 1970. */
  #until = 0;

  /** When recording ends, ms since 1970; undefined while nothing is recorded. */
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

  /** Is called with every response, so it must be fast while nothing is recorded. */
  observe(response: HttpResponse<string | Uint8Array>, received: ReceivedRequest | undefined): void {
    if (!isErrorName(response.result) || this.until === undefined) return;
    const { status, number: error } = ERRORS[response.result];
    const { method = 'POST', url = '/plants' } = received?.request ?? {};
    this.#requests.unshift({
      id: ++this.#lastId,
      at: Date.now(),
      tokenId: received?.tokenId,
      status,
      error,
      message: (JSON.parse(String(response.body)) as ErrorBody).message,
      requestLine: received && withoutTokens(`${method} ${url}`).slice(0, REJECTED_BODY_BYTES_MAX),
      // A copy: the rest of a large buffer is not kept.
      body: received?.body && Uint8Array.from(received.body.subarray(0, REJECTED_BODY_BYTES_MAX)),
      bodyBytes: received?.bodyBytes ?? 0,
    });
    if (this.#requests.length > REJECTED_MAX) this.#requests.pop();
  }

  /** The newest first, for the page. */
  list(labelOf: (tokenId: number) => string) {
    return this.#requests.map(request => {
      // Made once: the page reads the list every two seconds.
      request.shown ??= shownBody(request);
      const { tokenId, shown, ...rest } = request;
      return { ...rest, ...shown, label: tokenId === undefined ? null : labelOf(tokenId) };
    });
  }
}

/** The body as text, and the index at which it is wrong; null if it has no such place. */
function shownBody({ body, bodyBytes, error }: RejectedRequest): ShownBody {
  if (body === undefined) return { body: null, isCut: false, faultAt: null };
  const text = textOf(body);
  const shown = shownText(text);
  const isCut = body.length < bodyBytes;
  if (error !== ERRORS.notJson.number) return { body: shown, isCut, faultAt: null };
  // JSON also ends at a byte that is not UTF-8.
  const [utf8 = ''] = text.split(/\p{Cs}/u, 1);
  const fault = readToEnd(readJson(utf8, () => {})) ?? utf8.length;
  // Where the kept part ends, even a sound body seems wrong.
  const isAtCut = isCut && fault >= text.length - INCOMPLETE_LENGTH_MAX;
  const before = shownText(text.slice(0, fault));
  // It may not begin so if the fault is inside a token.
  return { body: shown, isCut, faultAt: !isAtCut && shown.startsWith(before) ? before.length : null };
}

/** The longest part that can be wrong only because the rest of it is missing, such as `\\u00e`. */
const INCOMPLETE_LENGTH_MAX = 5;
/** What can be a character of UTF-8 (RFC 3629 section 3), or else one byte of 0x80 or more. */
const CHARACTER = /[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}|[\x80-\xff]/g;

/** Text of UTF-8. A byte that is not UTF-8 becomes the lone surrogate U+DC00 plus the byte. */
function textOf(bytes: Uint8Array): string {
  const toSurrogate = (byte: string): string => String.fromCharCode(0xdc00 + byte.charCodeAt(0));
  return Buffer.from(bytes)
    .toString('latin1')
    .replace(CHARACTER, match => {
      const character = Buffer.from(match, 'latin1');
      return isUtf8(character) ? character.toString() : match.replace(/./gs, toSurrogate);
    });
}

/** Without tokens. Control characters except line ends, and bytes that are no text, are `\xHH`. */
function shownText(text: string): string {
  const hex = (each: string): string => (each.charCodeAt(0) & 0xff).toString(16).padStart(2, '0');
  return withoutTokens(text.replace(/(?!\n)[\p{Cc}\p{Cs}]/gu, each => `\\x${hex(each)}`));
}

const ZERO = String.raw`(?:\\x00)?`;
/** Also in UTF-16, where a zero byte follows each character. */
const TOKEN = new RegExp(`${[...'plant_'].join(ZERO)}(?:${ZERO}[0-9A-Za-z]){8,}`, 'g');

/** A client may send one of our tokens in the wrong place. */
function withoutTokens(text: string): string {
  return text.replace(TOKEN, 'plant_…');
}
