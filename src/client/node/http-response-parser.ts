import { INTERIM_RESPONSES_MAX } from '../limits.ts';
import type { HttpResponse } from '../transport.ts';

/** A response, and its position in the received text. */
interface ParsedResponse extends HttpResponse {
  /** Whether no other response follows on this connection. */
  closesConnection: boolean;
  end: number;
}

/** The bytes are not an HTTP/1 response. */
export class NotHttp extends Error {}

/** RFC 9112 section 4. Interim responses are skipped, but 101 is not accepted. */
const STATUS_LINE = /^HTTP\/1\.([01]) ((?!101)[1-5][0-9]{2})(?: .*)?$/;
/** RFC 9112 section 5, without line folding. Control characters except tab are rejected. */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)$/;
/**
 * White space around a value (RFC 9110 section 5.6.3). The lookbehind matches each run from its
 * beginning only. Without it the time would grow with the square of the length.
 */
const OUTER_BLANKS = /^[ \t]+|(?<![ \t])[ \t]+$/g;
const LENGTH = /^[0-9]{1,9}$/;
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,7})[ \t]*(?:;.*)?$/;
const LINE_END = '\r\n';
const HEADERS_END = '\r\n\r\n';

interface Body {
  bytes: string;
  end: number;
}

/**
 * Parses the response to a POST (RFC 9112).
 *
 * @param text the received bytes, one character per byte
 * @param start where the response begins, including interim responses before it
 * @param hasEnded whether the server has closed its side of the connection
 * @param bytesMax a longer body is cut, and the connection is then closed
 * @returns undefined while the response is incomplete
 * @throws {NotHttp} when the response is malformed, or its header section is longer than `bytesMax`
 */
export function readHttpResponse(
  text: string,
  start: number,
  hasEnded: boolean,
  bytesMax: number,
): ParsedResponse | undefined {
  const header = readHeaderSection(text, start);
  const body = header && readBody(text, header, hasEnded);
  if (header !== undefined && body !== undefined) {
    const { status, headers, closesConnection } = header;
    return {
      ...{ status, headers, body: utf8Text(body.bytes), end: body.end },
      closesConnection: closesConnection || hasEnded,
    };
  }
  if (text.length - start <= bytesMax) return undefined;
  if (header === undefined) throw new NotHttp();
  return { ...header, body: utf8Text(text.slice(header.end)), closesConnection: true, end: text.length };
}

const utf8 = new TextDecoder();

function utf8Text(characters: string): string {
  if (!/[\x80-\xff]/.test(characters)) return characters;
  return utf8.decode(Buffer.from(characters, 'latin1'));
}

/**
 * Parses status line and header fields, after any interim responses.
 *
 * @returns undefined while the header section is incomplete
 */
function readHeaderSection(text: string, start: number): Omit<ParsedResponse, 'body'> | undefined {
  let from = start;
  for (let interim = 0; interim <= INTERIM_RESPONSES_MAX; interim++) {
    const fieldsEnd = text.indexOf(HEADERS_END, from);
    if (fieldsEnd < 0) return undefined;
    const [statusLine = '', ...fields] = text.slice(from, fieldsEnd).split(LINE_END);
    const [, minorVersion, status] = STATUS_LINE.exec(statusLine) ?? [];
    if (status === undefined) throw new NotHttp();
    from = fieldsEnd + HEADERS_END.length;
    if (status.startsWith('1')) continue;
    const headers = readHeaders(fields);
    const hasClose = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(headers.connection ?? '');
    return { status: Number(status), headers, closesConnection: hasClose || minorVersion === '0', end: from };
  }
  throw new NotHttp();
}

function readHeaders(fields: string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  for (const line of fields) {
    const [, field, spacedValue] = FIELD.exec(line) ?? [];
    if (field === undefined || spacedValue === undefined) throw new NotHttp();
    const name = field.toLowerCase();
    const value = spacedValue.replace(OUTER_BLANKS, '');
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return headers;
}

/** RFC 9112 section 6.3. @returns undefined while the body is incomplete */
function readBody(
  text: string,
  { status, headers, end: start }: Omit<ParsedResponse, 'body'>,
  hasEnded: boolean,
): Body | undefined {
  if (status === 204 || status === 304) return { bytes: '', end: start };
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  if (coding !== undefined) {
    // Both headers together are a sign of response smuggling.
    if (length !== undefined || coding.toLowerCase() !== 'chunked') throw new NotHttp();
    return readChunks(text, start);
  }
  // Without a length the body ends with the connection.
  if (length === undefined) return hasEnded ? { bytes: text.slice(start), end: text.length } : undefined;
  if (!LENGTH.test(length)) throw new NotHttp();
  const end = start + Number(length);
  return end > text.length ? undefined : { bytes: text.slice(start, end), end };
}

/**
 * RFC 9112 section 7.1. The trailer section is skipped.
 *
 * @returns undefined while the chunks are incomplete
 */
function readChunks(text: string, start: number): Body | undefined {
  let bytes = '';
  for (let position = start; ; ) {
    const lineEnd = text.indexOf(LINE_END, position);
    if (lineEnd < 0) return undefined;
    const digits = CHUNK_SIZE.exec(text.slice(position, lineEnd))?.[1];
    if (digits === undefined) throw new NotHttp();
    const size = Number(`0x${digits}`);
    const chunkStart = lineEnd + LINE_END.length;
    const chunkEnd = chunkStart + size;
    if (size === 0) {
      // The trailer section ends with an empty line. Without trailers, that line follows directly.
      const end = text.indexOf(HEADERS_END, lineEnd);
      return end < 0 ? undefined : { bytes, end: end + HEADERS_END.length };
    }
    if (chunkEnd + LINE_END.length > text.length) return undefined;
    if (!text.startsWith(LINE_END, chunkEnd)) throw new NotHttp();
    bytes += text.slice(chunkStart, chunkEnd);
    position = chunkEnd + LINE_END.length;
  }
}
