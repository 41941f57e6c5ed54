import { hashToken, isWellFormed } from '../auth/token.ts';
import { isJsonMediaType } from './header-fields.ts';

/** Longest header section that the fast path accepts. Access tokens take one to two KiB. */
export const FAST_PATH_HEADERS_BYTES_MAX = 3 * 1024;
/** Header sections that the fast path caches. */
const FAST_PATH_CACHED_HEADERS_MAX = 1_000;

export const HEADERS_END = '\r\n\r\n';

export interface FastPathHeaders {
  /** The text of the header section, with {@link HEADERS_END}. */
  section: string;
  /** SHA-256 of the token in hexadecimal. */
  tokenHash: string;
  /** The token, if it is not one of ours. It must be verified before its first use. */
  accessToken: string | undefined;
  bodyBytes: number;
  traceparent: string | undefined;
  contentType: string;
  forwardedFor: string | undefined;
  host: string;
  userAgent: string | undefined;
}

/** RFC 9112 section 5 also allows other spaces around a value, and bytes beyond ASCII. */
const FIELD = /^([A-Za-z][A-Za-z0-9-]*): ([!-~](?:[ -~]*[!-~])?)$/;
const HOST = /^[A-Za-z0-9.-]+(?::[0-9]{1,5})?$/;
/** Our own token, or a signed JWT (RFC 7515 section 3.1). */
const CREDENTIAL = /^Bearer (?:([A-Za-z0-9_]+)|([\w-]+\.[\w-]+\.[\w-]+))$/;
const LENGTH = /^(?:0|[1-9][0-9]{0,6})$/;
/** Fields that change how a request is read, its response, or how its connection is used. */
const SPECIAL =
  /^(?:connection|content-encoding|expect|keep-alive|origin|proxy-connection|te|trailer|traceparent|transfer-encoding|upgrade)$/;
/** This field differs in each request, so the cache has the header section without it. */
const TRACEPARENT = /\r\n[tT]raceparent: ([!-~]+)(?=\r\n)/;

/** Clients repeat the same headers. Their meaning is constant; the token is checked each time. */
const cache = new Map<string, FastPathHeaders>();

/**
 * Reads the headers of a fast path request: `POST /plants` with one Host, Authorization,
 * Content-Type and Content-Length, each in its simplest form. No field may change how the request
 * is read. RFC 9112 allows more forms, and gives these the same meaning.
 *
 * @param section with the empty line at its end, one character per byte
 * @returns undefined for any other headers, which may be valid
 */
export function fastPathHeadersOf(section: string): FastPathHeaders | undefined {
  const cached = cache.get(section);
  if (cached !== undefined) return cached;
  const found = TRACEPARENT.exec(section);
  if (found !== null) {
    const others = fastPathHeadersOf(section.replace(TRACEPARENT, ''));
    // A request with several of them leaves the fast path: Node's HTTP server ignores all.
    return others && (others.traceparent ? undefined : { ...others, section, traceparent: found[1] });
  }
  const headers = readFastPathHeaders(section);
  if (headers === undefined) return undefined;
  if (cache.size >= FAST_PATH_CACHED_HEADERS_MAX) cache.clear();
  cache.set(section, headers);
  return headers;
}

function readFastPathHeaders(section: string): FastPathHeaders | undefined {
  const text = section.slice(0, -HEADERS_END.length);
  if (text.length > FAST_PATH_HEADERS_BYTES_MAX) return undefined;
  const [requestLine, ...lines] = text.split('\r\n');
  if (requestLine !== 'POST /plants HTTP/1.1') return undefined;
  const values = new Map<string, string>();
  for (const line of lines) {
    const [, field, value] = FIELD.exec(line) ?? [];
    if (field === undefined || value === undefined) return undefined;
    const name = field.toLowerCase();
    const isKeepAlive = name === 'connection' && value.toLowerCase() === 'keep-alive';
    if ((SPECIAL.test(name) && !isKeepAlive) || values.has(name)) return undefined;
    values.set(name, value);
  }
  const contentType = values.get('content-type') ?? '';
  const [, token = '', accessToken] = CREDENTIAL.exec(values.get('authorization') ?? '') ?? [];
  const length = values.get('content-length') ?? '';
  const host = values.get('host') ?? '';
  const isFastPath =
    (accessToken !== undefined || isWellFormed(token)) &&
    LENGTH.test(length) &&
    HOST.test(host) &&
    isJsonMediaType(contentType);
  if (!isFastPath) return undefined;
  return {
    section,
    tokenHash: hashToken(accessToken ?? token),
    accessToken,
    bodyBytes: Number(length),
    traceparent: undefined,
    contentType,
    forwardedFor: values.get('x-forwarded-for'),
    host,
    userAgent: values.get('user-agent'),
  };
}
