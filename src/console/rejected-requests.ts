import { isUtf8 } from 'node:buffer';
import { withoutTokens } from '../contract/bearer-token.ts';
import { ERRORS, type ErrorBody } from '../contract/errors.ts';
import { readJson, readToEnd } from '../contract/json-reader.ts';
import { type HttpResponse, isErrorName, type ReceivedRequest } from '../http/response.ts';

/** Rejected requests in memory. */
const REJECTED_MAX = 200;
/** Requests are recorded for this time. */
const RECORDING_MS = 3_600_000;
/** Stored bytes of the body of each rejected request. */
const REJECTED_BODY_BYTES_MAX = 2_000;

interface RejectedRequest {
  /** Identifies the request for the page. */
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
}

export type LabelOf = (tokenId: number) => string;

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

  start(): void {
    this.#until = Date.now() + RECORDING_MS;
  }

  /** Stops, and forgets what was recorded. */
  stop(): void {
    this.#until = 0;
    this.#requests.length = 0;
  }

  /** Records a rejection. The service calls it with every response, so it returns early. */
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
      // A copy, so that the rest of a large buffer can be freed.
      body: received?.body && Uint8Array.from(received.body.subarray(0, REJECTED_BODY_BYTES_MAX)),
      bodyBytes: received?.bodyBytes ?? 0,
    });
    if (this.#requests.length > REJECTED_MAX) this.#requests.pop();
  }

  /** The newest first, for the page. */
  list(labelOf: LabelOf) {
    return this.#requests.map(request => {
      const { tokenId, ...rest } = request;
      return { ...rest, ...shownBody(request), label: tokenId === undefined ? null : labelOf(tokenId) };
    });
  }
}

/** The text, or null if it was not read; whether it is only a beginning; the index of its fault. */
function shownBody({ body, bodyBytes, error }: RejectedRequest) {
  if (body === undefined) return { body: null, isCut: false, faultAt: null };
  const text = withoutTokens(textOf(body));
  const isCut = body.length < bodyBytes;
  return { body: text, isCut, faultAt: error === ERRORS.notJson.number ? jsonFault(text, isCut) : null };
}

/** The longest part that is wrong only because the rest is missing, such as `\\u00e`. */
const INCOMPLETE_LENGTH_MAX = 5;

/** The index at which a text stops being JSON in UTF-8. */
function jsonFault(text: string, isCut: boolean): number | null {
  const [utf8 = ''] = text.split(/\p{Cs}/u, 1);
  const fault = readToEnd(readJson(utf8, () => {})) ?? utf8.length;
  // The cut itself makes valid JSON end too early, possibly inside a character.
  return isCut && fault >= text.length - INCOMPLETE_LENGTH_MAX ? null : fault;
}

/** Bytes that may be a character of UTF-8 (RFC 3629 section 3), or any other byte from 0x80. */
const CHARACTER = /[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}|[\x80-\xff]/g;

/** Decodes UTF-8. A byte that is not UTF-8 becomes the lone surrogate U+DC00 plus the byte. */
function textOf(bytes: Uint8Array): string {
  const toSurrogate = (byte: string): string => String.fromCharCode(0xdc00 + byte.charCodeAt(0));
  return Buffer.from(bytes)
    .toString('latin1')
    .replace(CHARACTER, match => {
      const character = Buffer.from(match, 'latin1');
      return isUtf8(character) ? character.toString() : match.replace(/./gs, toSurrogate);
    });
}
