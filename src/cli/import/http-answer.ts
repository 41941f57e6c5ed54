import { ANSWER_BYTES_MAX } from './limits.ts';

/** An HTTP answer as a value. */
export interface HttpAnswer {
  status: number;
  /** By their names in lower case; the values of a repeated one are joined by commas. */
  headers: Record<string, string>;
  /** A character for each byte. */
  body: string;
  /** Whether no other answer follows on this connection. */
  isLast: boolean;
  /** Where it ends in the text that was read. */
  end: number;
}

/** Interim answers before one answer; a gateway sends one or two, and each is read again until the answer is whole. */
export const INTERIM_ANSWERS_MAX = 16;

/** Bytes that are no answer of HTTP/1. */
export class NotHttp extends Error {}

/** RFC 9112 section 4. Codes of interim answers are read past, but none switches to another protocol here. */
const STATUS_LINE = /^HTTP\/1\.([01]) ((?!101)[1-5][0-9]{2})(?: .*)?$/;
/**
 * RFC 9112 section 5, without the folded lines that it forbids; control characters other than the tab are refused. The
 * blanks around the value are matched with it, for to part them here would take a time that grows with their square.
 */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)$/;
const LENGTH = /^[0-9]{1,9}$/;
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,7})[ \t]*(?:;.*)?$/;
const LINE_END = '\r\n';
const HEAD_END = '\r\n\r\n';

/** The status line and header fields of a final or an interim answer. */
interface Head {
  status: number;
  minorVersion: string;
  fields: string[];
  /** Where it ends in the text. */
  end: number;
}

/** A body, and where it ends. */
type Body = Pick<HttpAnswer, 'body' | 'end'>;

/**
 * Reads the answer to a POST (RFC 9112).
 *
 * @param text what has arrived, a character for each byte
 * @param start where the answer begins, with the interim answers before it
 * @param hasEnded whether nothing more will arrive
 * @returns undefined when it has not arrived whole
 * @throws {NotHttp} when it is malformed, or longer than any answer of a plant store
 */
export function readHttpAnswer(text: string, start: number, hasEnded: boolean): HttpAnswer | undefined {
  const head = readFinalHead(text, start);
  if (head === undefined) return incomplete(text, start);
  const { status, minorVersion } = head;
  const headers = readHeaders(head.fields);
  const body = readBody(text, head.end, status, headers, hasEnded);
  if (body === undefined) return incomplete(text, start);
  const endsWithConnection = !hasLength(status, headers);
  const saysClose = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(headers.connection ?? '');
  return { status, headers, ...body, isLast: endsWithConnection || saysClose || minorVersion === '0' };
}

/** Reads past the interim answers. @returns undefined when it has not arrived whole */
function readFinalHead(text: string, start: number): Head | undefined {
  let head = readHead(text, start);
  for (let interim = 0; head !== undefined && head.status < 200; interim++) {
    if (interim === INTERIM_ANSWERS_MAX) throw new NotHttp();
    head = readHead(text, head.end);
  }
  return head;
}

/** @returns undefined when it has not arrived whole */
function readHead(text: string, start: number): Head | undefined {
  const headEnd = text.indexOf(HEAD_END, start);
  if (headEnd < 0) return undefined;
  const [statusLine, ...fields] = text.slice(start, headEnd).split(LINE_END) as [string, ...string[]];
  const [, minorVersion, status] = STATUS_LINE.exec(statusLine) ?? [];
  if (minorVersion === undefined || status === undefined) throw new NotHttp();
  return { status: Number(status), minorVersion, fields, end: headEnd + HEAD_END.length };
}

function incomplete(text: string, start: number): undefined {
  if (text.length - start > ANSWER_BYTES_MAX) throw new NotHttp();
}

function readHeaders(fields: string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  for (const line of fields) {
    const [, field, spacedValue] = FIELD.exec(line) ?? [];
    if (field === undefined || spacedValue === undefined) throw new NotHttp();
    const name = field.toLowerCase();
    const value = trimBlanks(spacedValue);
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return headers;
}

/** Without the blanks around it, which are spaces and tabs only (RFC 9110 section 5.6.3). */
function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text[start])) start++;
  while (end > start && isBlank(text[end - 1])) end--;
  return text.slice(start, end);
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}

/** Whether the end of the body can be told without that of the connection. */
function hasLength(status: number, headers: Record<string, string>): boolean {
  return (
    isBodiless(status) ||
    headers['content-length'] !== undefined ||
    headers['transfer-encoding'] !== undefined
  );
}

/** RFC 9112 section 6.3, rule 1. */
function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}

/** RFC 9112 section 6.3. @returns undefined when it has not arrived whole */
function readBody(
  text: string,
  start: number,
  status: number,
  headers: Record<string, string>,
  hasEnded: boolean,
): Body | undefined {
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  if (isBodiless(status)) return { body: '', end: start };
  if (coding !== undefined) {
    // Both together is how answers are smuggled past a gateway.
    if (length !== undefined || coding.toLowerCase() !== 'chunked') throw new NotHttp();
    return readChunks(text, start);
  }
  if (length === undefined) return hasEnded ? { body: text.slice(start), end: text.length } : undefined;
  if (!LENGTH.test(length)) throw new NotHttp();
  const end = start + Number(length);
  return end > text.length ? undefined : { body: text.slice(start, end), end };
}

/** RFC 9112 section 7.1; the trailer is skipped. @returns undefined when they have not arrived whole */
function readChunks(text: string, start: number): Body | undefined {
  let body = '';
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
      const end = text.indexOf(HEAD_END, lineEnd);
      return end < 0 ? undefined : { body, end: end + HEAD_END.length };
    }
    if (chunkEnd + LINE_END.length > text.length) return undefined;
    if (!text.startsWith(LINE_END, chunkEnd)) throw new NotHttp();
    body += text.slice(chunkStart, chunkEnd);
    position = chunkEnd + LINE_END.length;
  }
}
