import type { ErrorName } from '../core/contract/errors.ts';
import { HEADER_MAX_BYTES } from '../core/contract/limits.ts';
import { HTTP_TOKEN } from '../core/header-fields.ts';
import type { BodyFraming, ByteText } from '../core/request.ts';

/** The state of a body after some of its bytes were decoded. */
export type Decoded =
  /** All bytes belong to the body, and the body is incomplete. */
  | { kind: 'more' }
  /** The first `bytes` bytes belong to the body, which ends there. */
  | { kind: 'complete'; bytes: number }
  | Invalid;

interface Invalid {
  kind: 'invalid';
  error: Extract<ErrorName, 'badHttp' | 'headersTooLarge'>;
}

const MORE: Decoded = { kind: 'more' };
const BAD_HTTP: Invalid = { kind: 'invalid', error: 'badHttp' };
const TOO_LARGE: Invalid = { kind: 'invalid', error: 'headersTooLarge' };

/** RFC 9110 section 5.6.4. */
const QUOTED_STRING = String.raw`"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t -~\x80-\xff])*"`;
/** A chunk's size and its extensions (RFC 9112 section 7.1.1), without the end of the line. */
const CHUNK_LINE = new RegExp(
  `^([0-9A-Fa-f]{1,16})((?:;${HTTP_TOKEN}(?:=(?:${HTTP_TOKEN}|${QUOTED_STRING}))?)*)$`,
);
/** The start of a line that may become the line of a chunk. */
const CHUNK_LINE_PART = /^[0-9A-Fa-f]{1,16}(?:;[\t -~\x80-\xff]*)?\r?$/;
/** RFC 9110 section 6.5.1: a trailer must not frame the message. */
const TRAILER = new RegExp(
  String.raw`^(?!transfer-encoding:|content-length:)${HTTP_TOKEN}:[\t -~\x80-\xff]*$`,
  'i',
);
const LF = 0x0a;

/** The size of a chunk below 64 KiB, without extensions. The last chunk has the size 0. */
const SHORT_CHUNK_SIZE = /([1-9A-Fa-f][0-9A-Fa-f]{0,3})\r\n/y;
/** The end of a chunk's line, and the last chunk without trailers. */
const ONLY_CHUNK_END = '\r\n0\r\n\r\n';

/** The part of a body to which the next bytes belong. */
type Expected =
  | { kind: 'content'; bytes: number; isChunk: boolean }
  /** The CRLF after a chunk. `seen` is its first byte, if that has arrived. */
  | { kind: 'chunkEnd'; seen: '' | '\r' }
  /** `part` is the beginning of the line, if it has arrived. */
  | { kind: 'chunkLine' | 'trailer'; part: string }
  | { kind: 'nothing' }
  /** The bytes so far are no part of a body. */
  | Invalid;

/**
 * Reads a chunked body as most clients send a short one: whole, in one chunk.
 *
 * @returns undefined if the body that begins at `start` is incomplete, or has another form
 */
export function onlyChunkAt(
  received: ByteText,
  start: number,
): { content: ByteText; end: number } | undefined {
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
 * Finds the content of one body in the bytes of its connection, which may arrive in any parts. It
 * stores no content. It validates and drops chunk extensions and trailers. Their total size has the
 * limit of a header section.
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

  /** @param take is called with each part of the content, which is a view of `bytes` */
  decode(bytes: Buffer, take: (part: Buffer) => void): Decoded {
    let at = 0;
    for (;;) {
      const expected = this.#expected;
      if (expected.kind === 'invalid') return expected;
      if (expected.kind === 'nothing') return { kind: 'complete', bytes: at };
      if (at === bytes.length) return MORE;
      switch (expected.kind) {
        case 'content': {
          const part = bytes.subarray(at, at + expected.bytes);
          take(part);
          this.#expected = contentOf(expected.bytes - part.length, expected.isChunk);
          at += part.length;
          break;
        }
        case 'chunkEnd':
          this.#expected = afterChunkEnd(expected.seen, bytes[at]!);
          at++;
          break;
        case 'chunkLine':
        case 'trailer': {
          const lineEnd = bytes.indexOf(LF, at);
          const end = lineEnd === -1 ? bytes.length : lineEnd + 1;
          this.#expected = this.#afterLine(bytes, at, end, expected);
          at = end;
          break;
        }
      }
    }
  }

  /** @returns what follows the bytes of a line from `start` to `end`, or the rest of this line */
  #afterLine(
    bytes: Buffer,
    start: number,
    end: number,
    { kind, part }: Extract<Expected, { kind: 'chunkLine' | 'trailer' }>,
  ): Expected {
    if (part.length + end - start > HEADER_MAX_BYTES) return TOO_LARGE;
    const line = part + bytes.toString('latin1', start, end);
    if (!line.endsWith('\n'))
      return kind === 'chunkLine' && !CHUNK_LINE_PART.test(line) ? BAD_HTTP : { kind, part: line };
    if (!line.endsWith('\r\n')) return BAD_HTTP;
    const content = line.slice(0, -2);
    const next = kind === 'chunkLine' ? this.#afterChunkLine(content) : this.#afterTrailer(content);
    return next.kind !== 'invalid' && this.#extraBytes > HEADER_MAX_BYTES ? TOO_LARGE : next;
  }

  #afterChunkLine(line: string): Expected {
    const [, size, extensions] = CHUNK_LINE.exec(line) ?? [];
    if (size === undefined || extensions === undefined) return BAD_HTTP;
    this.#extraBytes += extensions.length;
    const length = Number(`0x${size}`);
    return length === 0 ? { kind: 'trailer', part: '' } : contentOf(length, true);
  }

  #afterTrailer(line: string): Expected {
    if (line === '') return { kind: 'nothing' };
    this.#extraBytes += line.length;
    return TRAILER.test(line) ? { kind: 'trailer', part: '' } : BAD_HTTP;
  }
}

function contentOf(bytes: number, isChunk: boolean): Expected {
  if (bytes > 0) return { kind: 'content', bytes, isChunk };
  return isChunk ? { kind: 'chunkEnd', seen: '' } : { kind: 'nothing' };
}

function afterChunkEnd(seen: '' | '\r', byte: number): Expected {
  const character = String.fromCharCode(byte);
  if (seen === '' && character === '\r') return { kind: 'chunkEnd', seen: '\r' };
  return seen === '\r' && character === '\n' ? { kind: 'chunkLine', part: '' } : BAD_HTTP;
}
