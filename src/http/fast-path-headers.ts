import { hashToken, isWellFormed } from '../auth/token.ts';
import { isJsonMediaType } from './header-fields.ts';
import { FAST_PATH_CACHED_HEADERS_MAX, FAST_PATH_HEADERS_BYTES_MAX } from './limits.ts';

/** What the head of an ordinary request says. */
interface FastPathHeaders {
  /** SHA-256 of the token in hexadecimal. */
  tokenHash: string;
  bodyBytes: number;
}

/** Of every ordinary request. */
const REQUEST_LINE = 'POST /plants HTTP/1.1';
/** RFC 9112 section 5 allows more: no space or several in front of a value, some behind it, bytes beyond ASCII. */
const FIELD = /^([A-Za-z][A-Za-z0-9-]*): ([!-~](?:[ -~]*[!-~])?)$/;
const HOST = /^[A-Za-z0-9.-]+(?::[0-9]{1,5})?$/;
const CREDENTIAL = /^Bearer ([A-Za-z0-9_]+)$/;
const LENGTH = /^(?:0|[1-9][0-9]{0,6})$/;
/** Fields that change how a request is read, what its response says, or what becomes of its connection. */
const SPECIAL =
  /^(?:connection|content-encoding|expect|keep-alive|origin|proxy-connection|te|trailer|transfer-encoding|upgrade)$/;

/** Clients send the same head again and again. What it says never changes; whether its token is in force is asked each time. */
const seen = new Map<string, FastPathHeaders>();

/**
 * Reads the head of an ordinary request: `POST /plants` with one Host, Authorization, Content-Type and Content-Length,
 * each in its plainest form, and nothing that changes how the request is read. This is a small part of what RFC 9112
 * allows, and means the same there.
 *
 * @param text without the empty line at its end, a character for each byte
 * @returns undefined for a head that is not ordinary, which may be valid all the same
 */
export function fastPathHeadersOf(text: string): FastPathHeaders | undefined {
  const known = seen.get(text);
  if (known !== undefined) return known;
  const headers = readFastPathHeaders(text);
  if (headers === undefined) return undefined;
  if (seen.size >= FAST_PATH_CACHED_HEADERS_MAX) seen.clear();
  seen.set(text, headers);
  return headers;
}

function readFastPathHeaders(text: string): FastPathHeaders | undefined {
  if (text.length > FAST_PATH_HEADERS_BYTES_MAX) return undefined;
  const [requestLine, ...lines] = text.split('\r\n');
  if (requestLine !== REQUEST_LINE) return undefined;
  const values = new Map<string, string>();
  for (const line of lines) {
    const [, field, value] = FIELD.exec(line) ?? [];
    if (field === undefined || value === undefined) return undefined;
    const name = field.toLowerCase();
    const keepsConnection = name === 'connection' && value.toLowerCase() === 'keep-alive';
    if ((SPECIAL.test(name) && !keepsConnection) || values.has(name)) return undefined;
    values.set(name, value);
  }
  const token = CREDENTIAL.exec(values.get('authorization') ?? '')?.[1] ?? '';
  const length = values.get('content-length') ?? '';
  const isFastPath =
    isWellFormed(token) &&
    LENGTH.test(length) &&
    HOST.test(values.get('host') ?? '') &&
    isJsonMediaType(values.get('content-type') ?? '');
  return isFastPath ? { tokenHash: hashToken(token), bodyBytes: Number(length) } : undefined;
}
