import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import { FAULTY_LINES_MAX } from './limits.ts';

/** Thrown at bytes that are not UTF-8, after all text before them was returned. */
export class NotUtf8 extends Error {
  /** Whether the file begins with a UTF-16 byte order mark. */
  readonly isUtf16: boolean;

  constructor(isUtf16: boolean) {
    super('not UTF-8');
    this.isUtf16 = isUtf16;
  }
}

/** The longest character in bytes (RFC 3629 section 3). */
const CHARACTER_BYTES_MAX = 4;
const BYTE_ORDER_MARK = Buffer.from('\ufeff');
const UTF_16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];

/**
 * Decodes UTF-8 chunk by chunk. It never inserts replacement characters: it returns the text before
 * the first invalid byte, then throws {@link NotUtf8}. It skips a byte order mark at the start (RFC
 * 3629 section 6).
 *
 * @returns chunks of text that contain only whole characters; none is empty
 */
export async function* utf8Texts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let isStart = true;
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk]);
    const end = textLength(bytes);
    const text = bytes.toString(
      'utf8',
      isStart && startsWith(bytes, BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0,
      end,
    );
    if (end > 0) isStart = false;
    if (text !== '') yield text;
    rest = bytes.subarray(end);
    // Too long for an incomplete character, so the bytes are invalid.
    if (rest.length >= CHARACTER_BYTES_MAX) break;
  }
  if (rest.length > 0) throw new NotUtf8(isStart && UTF_16_MARKS.some(mark => startsWith(rest, mark)));
}

/**
 * Finds lines that are not UTF-8, in a file that is UTF-8 otherwise: converting it would damage its
 * other lines. A byte order mark or a character beyond ASCII shows it.
 *
 * @returns numbers of the first such lines; none if the file has no such character
 */
export async function faultyLines(chunks: AsyncIterable<Uint8Array>): Promise<number[]> {
  const numbers = new Set<number>();
  let number = 1;
  let hasUtf8 = false;
  for await (const text of Readable.from(chunks, { objectMode: false }).setEncoding('utf8')) {
    for (const [character] of text.matchAll(/\n|[^\0-\x7f]/gu)) {
      if (character === '\n') number++;
      else if (character !== '\ufffd') hasUtf8 = true;
      else if (numbers.size < FAULTY_LINES_MAX) numbers.add(number);
    }
  }
  return hasUtf8 ? [...numbers] : [];
}

/** Yields `first`, then `rest`. If the caller stops early, `rest` ends too and closes its file. */
export async function* joined<T>(
  first: T,
  rest: AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  try {
    yield first;
    yield* rest;
  } finally {
    await rest.return();
  }
}

export function startsWith(bytes: Buffer, mark: Buffer): boolean {
  return bytes.subarray(0, mark.length).equals(mark);
}

/** Length of the valid, complete characters at the start. */
function textLength(bytes: Buffer): number {
  for (let cut = 0; cut < CHARACTER_BYTES_MAX && cut <= bytes.length; cut++)
    if (isUtf8(bytes.subarray(0, bytes.length - cut))) return bytes.length - cut;
  // Lenient decoding replaces invalid bytes, so the first difference is the first invalid byte.
  const replaced = Buffer.from(bytes.toString('utf8'));
  return textLength(
    bytes.subarray(
      0,
      bytes.findIndex((byte, index) => byte !== replaced[index]),
    ),
  );
}
