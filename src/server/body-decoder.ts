import { HEADER_BYTES_MAX } from '../core/contract/limits.ts';
import type { BodyFraming } from '../core/request.ts';

/** Why the bytes of a body are rejected. */
export type BodyFault = 'badHttp' | 'headersTooLarge';

/** A chunk's size and its extensions (RFC 9112 section 7.1.1), without the end of the line. */
const CHUNK_LINE =
  /^([0-9A-Fa-f]{1,16})((?:;[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+|"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*)$/;
/** A line that is incomplete, but may become a chunk's. */
const CHUNK_LINE_PART = /^[0-9A-Fa-f]{1,16}(?:;[\t -~\x80-\xff]*)?\r?$/;
/** RFC 9110 section 6.5.1: none that frames the message. */
const TRAILER = /^(?!transfer-encoding:|content-length:)[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*$/i;
const LF = 0x0a;

/** The size of a chunk of at most 64 KiB, without extensions. Not of the last chunk, which is 0. */
const SHORT_CHUNK_SIZE = /([1-9A-Fa-f][0-9A-Fa-f]{0,3})\r\n/y;
/** The end of a chunk's line, and the last chunk without trailers. */
const ONLY_CHUNK_END = '\r\n0\r\n\r\n';

/** What the next bytes of a body are. */
type Expected =
  | { kind: 'content'; bytes: number; isChunk: boolean }
  /** The end of the line after a chunk. `seen` is its first byte, if that has arrived. */
  | { kind: 'chunkEnd'; seen: '' | '\r' }
  /** `part` is the beginning of the line, if it has arrived. */
  | { kind: 'chunkLine' | 'trailer'; part: string }
  | { kind: 'nothing' };

/**
 * Reads a chunked body as most clients send a short one: whole, in one chunk.
 *
 * @param received with one character for each byte
 * @returns undefined if the body that begins at `start` is another one, or is incomplete
 */
export function onlyChunkAt(received: string, start: number): { content: string; end: number } | undefined {
  SHORT_CHUNK_SIZE.lastIndex = start;
  const size = SHORT_CHUNK_SIZE.exec(received)?.[1];
  if (size === undefined) return undefined;
  const contentStart = SHORT_CHUNK_SIZE.lastIndex;
  const contentEnd = contentStart + Number(`0x${size}`);
  if (!received.startsWith(ONLY_CHUNK_END, contentEnd)) return undefined;
  const content = received.slice(contentStart, contentEnd);
  return { content, end: contentEnd + ONLY_CHUNK_END.length };
}

/**
 * Finds the content of one body in the bytes of its connection, in any pieces. It keeps no content.
 * Chunk extensions and trailers are checked and dropped. Together they are limited as a header
 * section is.
 */
export class BodyDecoder {
  #expected: Expected;
  /** Bytes of chunk extensions and trailers so far. */
  #extraBytes = 0;

  constructor(framing: BodyFraming) {
    this.#expected =
      framing.kind === 'chunked' ? { kind: 'chunkLine', part: '' } : contentOf(framing.bytes, false);
  }

  /** Whether the whole body was decoded. */
  get isComplete(): boolean {
    return this.#expected.kind === 'nothing';
  }

  /**
   * @param take is called with each piece of the content. It is a view of `bytes`
   * @returns how many of the bytes belong to the body; what is wrong with them otherwise
   */
  decode(bytes: Buffer, take: (piece: Buffer) => void): number | BodyFault {
    let at = 0;
    while (at < bytes.length && this.#expected.kind !== 'nothing') {
      const next =
        this.#expected.kind === 'content'
          ? this.#takeContent(bytes, at, this.#expected, take)
          : this.#expected.kind === 'chunkEnd'
            ? this.#takeChunkEnd(bytes[at]!, at, this.#expected)
            : this.#takeLine(bytes, at, this.#expected);
      if (typeof next !== 'number') return next;
      at = next;
    }
    return at;
  }

  #takeContent(
    bytes: Buffer,
    at: number,
    { bytes: left, isChunk }: Extract<Expected, { kind: 'content' }>,
    take: (piece: Buffer) => void,
  ): number {
    const piece = bytes.subarray(at, at + left);
    take(piece);
    this.#expected = contentOf(left - piece.length, isChunk);
    return at + piece.length;
  }

  #takeChunkEnd(byte: number, at: number, { seen }: Extract<Expected, { kind: 'chunkEnd' }>) {
    const character = String.fromCharCode(byte);
    if (seen === '' && character === '\r') this.#expected = { kind: 'chunkEnd', seen: '\r' };
    else if (seen === '\r' && character === '\n') this.#expected = { kind: 'chunkLine', part: '' };
    else return 'badHttp';
    return at + 1;
  }

  #takeLine(
    bytes: Buffer,
    at: number,
    { kind, part }: Extract<Expected, { kind: 'chunkLine' | 'trailer' }>,
  ): number | BodyFault {
    const lineEnd = bytes.indexOf(LF, at);
    const end = lineEnd === -1 ? bytes.length : lineEnd + 1;
    if (part.length + end - at > HEADER_BYTES_MAX) return 'headersTooLarge';
    const line = part + bytes.toString('latin1', at, end);
    if (lineEnd === -1) {
      if (kind === 'chunkLine' && !CHUNK_LINE_PART.test(line)) return 'badHttp';
      this.#expected = { kind, part: line };
      return end;
    }
    if (!line.endsWith('\r\n')) return 'badHttp';
    const next = kind === 'chunkLine' ? this.#chunkOf(line.slice(0, -2)) : this.#trailerOf(line.slice(0, -2));
    if (typeof next === 'string') return next;
    if (this.#extraBytes > HEADER_BYTES_MAX) return 'headersTooLarge';
    this.#expected = next;
    return end;
  }

  #chunkOf(line: string): Expected | BodyFault {
    const [, size, extensions] = CHUNK_LINE.exec(line) ?? [];
    if (size === undefined || extensions === undefined) return 'badHttp';
    this.#extraBytes += extensions.length;
    const length = Number(`0x${size}`);
    return length === 0 ? { kind: 'trailer', part: '' } : contentOf(length, true);
  }

  #trailerOf(line: string): Expected | BodyFault {
    if (line === '') return { kind: 'nothing' };
    this.#extraBytes += line.length;
    return TRAILER.test(line) ? { kind: 'trailer', part: '' } : 'badHttp';
  }
}

function contentOf(bytes: number, isChunk: boolean): Expected {
  if (bytes > 0) return { kind: 'content', bytes, isChunk };
  return isChunk ? { kind: 'chunkEnd', seen: '' } : { kind: 'nothing' };
}
