import { INTERIM_RESPONSES_MAX } from '../limits.ts';
import type { HttpResponse } from '../transport.ts';

/** An answer, and where it stands among those of its connection. */
interface ParsedResponse extends HttpResponse {
  /** Whether no other answer follows on this connection. */
  isLast: boolean;
  end: number;
}

/** Bytes that are no answer of HTTP/1. */
export class NotHttp extends Error {}

/** RFC 9112 section 4. Codes of interim answers are read past, but none switches to another protocol here. */
const STATUS_LINE = /^HTTP\/1\.([01]) ((?!101)[1-5][0-9]{2})(?: .*)?$/;
/** RFC 9112 section 5, without the folded lines that it forbids; control characters other than the tab are refused. */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)$/;
/**
 * The blanks around a value (RFC 9110 section 5.6.3). Each run of them is looked at from its beginning only, or many would
 * take a time that grows with their square.
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
 * Reads the answer to a POST (RFC 9112).
 *
 * @param text what has arrived, a character for each byte
 * @param start where the answer begins, with the interim answers before it
 * @param hasEnded whether nothing more will arrive
 * @param bytesMax of a body that goes on beyond this, the beginning is taken, and the connection is at its end
 * @returns undefined when it has not arrived whole
 * @throws {NotHttp} when it is malformed, or its head is longer than that
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
    const { status, headers, isLast } = header;
    return { status, headers, body: utf8Text(body.bytes), isLast: isLast || hasEnded, end: body.end };
  }
  if (text.length - start <= bytesMax) return undefined;
  if (header === undefined) throw new NotHttp();
  return { ...header, body: utf8Text(text.slice(header.end)), isLast: true, end: text.length };
}

const utf8 = new TextDecoder();

function utf8Text(characters: string): string {
  if (!/[\x80-\xff]/.test(characters)) return characters;
  return utf8.decode(Buffer.from(characters, 'latin1'));
}

/**
 * Reads status line and header fields, past those of interim responses.
 *
 * @returns undefined when they have not arrived whole
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
    const saysClose = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(headers.connection ?? '');
    return { status: Number(status), headers, isLast: saysClose || minorVersion === '0', end: from };
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

/** RFC 9112 section 6.3. @returns undefined when it has not arrived whole */
function readBody(
  text: string,
  { status, headers, end: start }: Omit<ParsedResponse, 'body'>,
  hasEnded: boolean,
): Body | undefined {
  if (status === 204 || status === 304) return { bytes: '', end: start };
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  if (coding !== undefined) {
    // Both together is how answers are smuggled past a gateway.
    if (length !== undefined || coding.toLowerCase() !== 'chunked') throw new NotHttp();
    return readChunks(text, start);
  }
  // The end of the connection is its end.
  if (length === undefined) return hasEnded ? { bytes: text.slice(start), end: text.length } : undefined;
  if (!LENGTH.test(length)) throw new NotHttp();
  const end = start + Number(length);
  return end > text.length ? undefined : { bytes: text.slice(start, end), end };
}

/** RFC 9112 section 7.1; the trailer is skipped. @returns undefined when they have not arrived whole */
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
      // The trailer ends in an empty line, as a head does; without one that line follows at once.
      const end = text.indexOf(HEADERS_END, lineEnd);
      return end < 0 ? undefined : { bytes, end: end + HEADERS_END.length };
    }
    if (chunkEnd + LINE_END.length > text.length) return undefined;
    if (!text.startsWith(LINE_END, chunkEnd)) throw new NotHttp();
    bytes += text.slice(chunkStart, chunkEnd);
    position = chunkEnd + LINE_END.length;
  }
}
