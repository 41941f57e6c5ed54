import { isAscii, isUtf8 } from 'node:buffer';
import type { Texts } from './line-ends.ts';

/**
 * A character of two to four bytes (RFC 3629 section 4), or any other byte above 0x7F, which is
 * invalid. The pattern is for bytes as characters of Latin-1.
 */
const CHARACTER_OR_INVALID =
  /(?:[\xc2-\xdf]|\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]|\xed[\x80-\x9f]|\xf0[\x90-\xbf][\x80-\xbf]|[\xf1-\xf3][\x80-\xbf]{2}|\xf4[\x80-\x8f][\x80-\xbf])[\x80-\xbf]|([\x80-\xff])/g;
/** The code units of {@link escapedText} for invalid bytes. With the flag u, it matches no pair. */
const INVALID_BYTES = /([\udc80-\udcff]+)/u;
/** The code unit of the invalid byte 0x80 is U+DC80. */
const ESCAPE_BASE = 0xdc00;
const MARK = '\ufeff';

/**
 * Decodes UTF-8 and loses no byte: an invalid byte from 0x80 to 0xFF becomes an unpaired surrogate
 * from U+DC80 to U+DCFF, as in PEP 383. UTF-8 itself has no surrogates, so `isWellFormed` of the
 * text says whether the bytes are UTF-8.
 */
export function escapedText(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8');
  return bytes
    .toString('latin1')
    .replace(CHARACTER_OR_INVALID, (character: string, invalid: string | undefined) =>
      invalid === undefined
        ? Buffer.from(character, 'latin1').toString('utf8')
        : String.fromCharCode(ESCAPE_BASE + invalid.charCodeAt(0)),
    );
}

/** The bytes of an {@link escapedText}. */
export function bytesOfText(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text);
  // The low byte of each escape is the invalid byte, which is what the encoding latin1 writes.
  const parts = text.split(INVALID_BYTES);
  return Buffer.concat(parts.map((part, index) => Buffer.from(part, index % 2 === 1 ? 'latin1' : 'utf8')));
}

/** @returns the index of the first invalid byte in an {@link escapedText}; its length if none */
export function indexOfInvalid(text: string): number {
  return text.isWellFormed() ? text.length : text.split(INVALID_BYTES, 1)[0]!.length;
}

/** Replaces each run of invalid bytes in an {@link escapedText}. */
export function replaceInvalid(text: string, replacement: (bytes: Buffer) => string): string {
  const parts = text.split(INVALID_BYTES);
  return parts
    .map((part, index) => (index % 2 === 1 ? replacement(Buffer.from(part, 'latin1')) : part))
    .join('');
}

/** @returns the length of the bytes without an incomplete character at their end */
function completeLength(bytes: Buffer): number {
  for (let length = 1; length <= Math.min(3, bytes.length); length++) {
    const byte = bytes[bytes.length - length]!;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;
    const wanted = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    return wanted > length ? bytes.length - length : bytes.length;
  }
  return bytes.length;
}

/** Joins and divides chunks, so that each ends with a whole character of UTF-8. */
async function* wholeCharacters(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    // A copy of each chunk would double the work of the garbage collector.
    const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    const length = completeLength(bytes);
    rest = bytes.subarray(length);
    if (length > 0) yield bytes.subarray(0, length);
  }
  if (rest.length > 0) yield rest;
}

/**
 * Decodes UTF-8 chunk by chunk as {@link escapedText} does. It skips a byte order mark at the start
 * (RFC 3629 section 6).
 */
export async function* utf8Texts(chunks: AsyncIterable<Buffer>): Texts {
  let isStart = true;
  for await (const bytes of wholeCharacters(chunks)) {
    const text = escapedText(bytes);
    const own = isStart && text.startsWith(MARK) ? text.slice(MARK.length) : text;
    isStart = false;
    if (own !== '') yield own;
  }
}

/** Reads all chunks. @returns what they contain */
export async function contentOf(chunks: AsyncIterable<Buffer>): Promise<'ASCII' | 'UTF-8' | 'other'> {
  let isAllAscii = true;
  let isAllUtf8 = true;
  for await (const bytes of wholeCharacters(chunks)) {
    isAllAscii &&= isAscii(bytes);
    isAllUtf8 &&= isUtf8(bytes);
  }
  return isAllAscii ? 'ASCII' : isAllUtf8 ? 'UTF-8' : 'other';
}
