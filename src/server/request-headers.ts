import type { ErrorName } from '../core/contract/errors.ts';
import { HEADER_MAX_BYTES } from '../core/contract/limits.ts';
import { fieldValues, HTTP_TOKEN } from '../core/header-fields.ts';
import type { BodyFraming, ByteText, RequestHeaders } from '../core/request.ts';

/** The bytes of the header section of a request, through the empty line. */
export type HeadersReading =
  | { kind: 'headers'; section: ByteText }
  /** The bytes so far may become a valid request. */
  | { kind: 'more' }
  | { kind: 'invalid'; error: Extract<ErrorName, 'badHttp' | 'headersTooLarge'> };

const SECTION_END = '\r\n\r\n';

const MORE: HeadersReading = { kind: 'more' };
const BAD_HTTP: HeadersReading = { kind: 'invalid', error: 'badHttp' };
const TOO_LARGE: HeadersReading = { kind: 'invalid', error: 'headersTooLarge' };

/** Octets that are invalid in a header section: most controls, and a CR or LF without the other. */
const FORBIDDEN = /[^\t\n\r -~\x80-\xff]|\r(?!\n)|(?<!\r)\n/;
/** The same octets in an incomplete header section, where LF may follow a final CR. */
const FORBIDDEN_IN_PART = /[^\t\n\r -~\x80-\xff]|\r(?!\n|$)|(?<!\r)\n/g;
/** RFC 9112 section 3: single spaces, no fragment, and nothing after the version. */
const REQUEST_LINE = new RegExp(String.raw`^(${HTTP_TOKEN}) ([!"$-~]+) HTTP/1\.([01])$`);
/** The beginning of a request line. */
const REQUEST_LINE_PART = new RegExp(
  String.raw`^${HTTP_TOKEN}(?: (?:[!"$-~]+(?: (?:H(?:T(?:T(?:P(?:/(?:1(?:\.(?:[01]\r?)?)?)?)?)?)?)?)?)?)?)?$`,
);
/** RFC 9112 section 5.1: no space before the colon. */
const FIELD = new RegExp(`^(${HTTP_TOKEN}):(.*)$`);
/** RFC 9112 section 3.2: origin form, absolute form without user information, or `*`. */
const TARGET =
  /^(?:\/|\*$|[A-Za-z]+:\/\/(?:\[[0-9A-Za-z:.%_~-]+\]|[0-9A-Za-z._~%!$&'()*+,;=-]+)(?::[0-9]*)?(?:[/?]|$))/;
/** RFC 9112 section 3.2.3, for CONNECT alone. */
const AUTHORITY = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):[0-9]{1,5}$/;
/** RFC 3986 section 3.2: host and port, without user information. */
const HOST = /^(?:\[[0-9A-Za-z:.%_~-]+\]|[0-9A-Za-z\-._~%!$&'()*+,;=]*)(?::[0-9]*)?$/;
/**
 * A proxy may read a longer number modulo 2^64. A length above 2^53 is rounded here, but no client
 * sends that many bytes. Leading zeros are valid (RFC 9110 section 8.6).
 */
const LENGTH = /^0*[0-9]{1,19}$/;
/** RFC 9112 section 3.2.2: a server must accept the absolute form, which is meant for proxies. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*([^#]*)/i;

/** Limit of empty lines before one request. No client sends that many. */
export const EMPTY_LINES_MAX_BYTES = 64;
const EMPTY_LINES = /(?:\r\n)*/y;

/** RFC 9112 section 2.2: empty lines before a request are ignored. @returns their bytes */
export function emptyLinesAt(received: ByteText, start: number): number {
  if (!received.startsWith('\r\n', start)) return 0;
  EMPTY_LINES.lastIndex = start;
  EMPTY_LINES.test(received);
  return EMPTY_LINES.lastIndex - start;
}

/**
 * Finds the header section of the request that begins at `start`, through the empty line.
 *
 * @param scanned how many of these bytes an earlier call has scanned
 */
export function findHeaders(received: ByteText, start: number, scanned = 0): HeadersReading {
  const scanStart = start + Math.max(0, scanned - SECTION_END.length);
  const end = received.indexOf(SECTION_END, scanStart);
  const length = (end === -1 ? received.length : end + SECTION_END.length) - start;
  if (length > HEADER_MAX_BYTES) return TOO_LARGE;
  if (end !== -1) return { kind: 'headers', section: received.slice(start, start + length) };
  const lineEnd = received.indexOf('\r\n', start);
  const line = received.slice(start, lineEnd === -1 ? undefined : lineEnd);
  FORBIDDEN_IN_PART.lastIndex = scanStart;
  const isPossible =
    !FORBIDDEN_IN_PART.test(received) && (lineEnd === -1 ? REQUEST_LINE_PART : REQUEST_LINE).test(line);
  if (!isPossible) return BAD_HTTP;
  return length < HEADER_MAX_BYTES ? MORE : TOO_LARGE;
}

/**
 * Reads a header section (RFC 9112 sections 3, 5 and 6). It rejects a header section that a proxy
 * could understand in another way, which section 11.2 calls request smuggling.
 *
 * @param section with the empty line at its end
 * @returns undefined if it is invalid
 */
export function readHeaders(section: ByteText): RequestHeaders | undefined {
  if (FORBIDDEN.test(section)) return undefined;
  const [requestLine = '', ...lines] = section.slice(0, -SECTION_END.length).split('\r\n');
  const [, method, target, minor] = REQUEST_LINE.exec(requestLine) ?? [];
  if (method === undefined || target === undefined) return undefined;
  if (!(method === 'CONNECT' ? AUTHORITY : TARGET).test(target)) return undefined;
  const fields: string[] = [];
  for (const line of lines) {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    fields.push(name, withoutBlanks(value));
  }
  const isHttp10 = minor === '0';
  const valuesOf = (name: string): string[] => fieldValues(fields, name);
  const hosts = valuesOf('host');
  if (hosts.length !== 1 && !(isHttp10 && hosts.length === 0)) return undefined;
  if (hosts[0] !== undefined && !HOST.test(hosts[0])) return undefined;
  const framing = framingOf(valuesOf('content-length'), valuesOf('transfer-encoding'), isHttp10);
  if (framing === undefined) return undefined;
  // A pattern with the blanks around the comma would take quadratic time.
  const connection = valuesOf('connection').join().toLowerCase().split(',').map(withoutBlanks);
  return {
    method,
    target,
    path: pathOf(target),
    fields,
    // RFC 9110 section 9.3.6: CONNECT has no content. The next bytes may be meant for the tunnel.
    framing: method === 'CONNECT' ? { kind: 'length', bytes: 0 } : framing,
    // RFC 9110 section 10.1.1: an expectation in HTTP/1.0 is ignored.
    expectsContinue: !isHttp10 && valuesOf('expect').join().toLowerCase() === '100-continue',
    isLast:
      method === 'CONNECT' ||
      connection.includes('close') ||
      (isHttp10 && !connection.includes('keep-alive')),
    contentType: valuesOf('content-type').join(', ') || undefined,
    forwardedFor: valuesOf('x-forwarded-for').join(', ') || undefined,
    host: hosts[0],
    userAgent: valuesOf('user-agent')[0],
  };
}

/** RFC 9112 section 6: one Content-Length or `chunked`, never both. HTTP/1.0 has no `chunked`. */
function framingOf(lengths: string[], codings: string[], isHttp10: boolean): BodyFraming | undefined {
  if (codings.length > 0) {
    const isChunked = codings.length === 1 && codings[0]!.toLowerCase() === 'chunked';
    return isChunked && lengths.length === 0 && !isHttp10 ? { kind: 'chunked' } : undefined;
  }
  const [length = '0'] = lengths;
  if (lengths.length > 1 || !LENGTH.test(length)) return undefined;
  return { kind: 'length', bytes: Number(length) };
}

/** Optional whitespace is space and tab. `trim` would also remove U+00A0, which is a byte here. */
function withoutBlanks(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start++;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--;
  return value.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** The path of a target in origin or absolute form, decoded except for delimiters, if decodable. */
export function pathOf(target: string): string {
  const [, afterHost = target] = ABSOLUTE_FORM.exec(target) ?? [];
  const path = afterHost.replace(/\?.*/s, '');
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
