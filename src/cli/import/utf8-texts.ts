import { countLineEnds } from './line-ends.ts';

/** Maximum of bytes before and after an invalid byte in {@link NotUtf8}. */
const CONTEXT_BYTES = 40;

/** Thrown at the first byte that is not UTF-8, after all text before it was returned. */
export class NotUtf8 extends Error {
  /** Number of the line with the first invalid byte. */
  readonly line: number;
  /** Bytes around the first invalid byte, and its position in them. */
  readonly bytes: Buffer;
  readonly position: number;

  constructor(line: number, bytes: Buffer, position: number) {
    super();
    this.line = line;
    this.bytes = bytes;
    this.position = position;
  }
}

/**
 * Decodes UTF-8 chunk by chunk into texts of whole characters. It throws {@link NotUtf8} before the
 * first invalid byte, or before an earlier U+FFFD in the same chunk. It skips a byte order mark at
 * the start (RFC 3629 section 6).
 */
export async function* utf8Texts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const strict = new TextDecoder('utf-8', { fatal: true });
  // The decoder replaces invalid bytes by U+FFFD, which shows where they begin.
  const lenient = new TextDecoder();
  let line = 1;
  let endsWithCr = false;
  let last: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const text = lenient.decode(chunk, { stream: true });
    const context = Buffer.concat([last, chunk]);
    try {
      strict.decode(chunk, { stream: true });
    } catch {
      const before = text.split('\ufffd', 1)[0]!;
      if (before !== '') yield before;
      line += countLineEnds(before) - Number(endsWithCr && before.startsWith('\n'));
      throw notUtf8(line, context);
    }
    last = startingWithCharacter(context.subarray(-CONTEXT_BYTES));
    if (text === '') continue;
    line += countLineEnds(text) - Number(endsWithCr && text.startsWith('\n'));
    endsWithCr = text.endsWith('\r');
    yield text;
  }
  // The file may end with an incomplete character.
  if (lenient.decode() !== '') throw notUtf8(line, last);
}

/** Removes bytes at the start that belong to a character whose first byte is missing. */
function startingWithCharacter(bytes: Buffer): Buffer {
  const start = bytes.findIndex(byte => (byte & 0xc0) !== 0x80);
  return bytes.subarray(start < 0 ? bytes.length : start);
}

/** @param bytes that begin with a character */
function notUtf8(line: number, bytes: Buffer): NotUtf8 {
  const [before = ''] = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes).split('\ufffd', 1);
  const position = Buffer.byteLength(before);
  const start = Math.max(position - CONTEXT_BYTES, 0);
  return new NotUtf8(line, bytes.subarray(start, position + CONTEXT_BYTES), position - start);
}

/** Yields `first`, then `rest`. If the caller stops early, `rest` ends too and closes its file. */
export async function* joined<T>(
  first: T,
  rest: AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  await using _ = rest;
  yield first;
  yield* rest;
}
