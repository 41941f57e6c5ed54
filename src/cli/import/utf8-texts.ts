import { countLineEnds } from './line-ends.ts';

/** Bytes before and after an invalid byte that an error has. */
const CONTEXT_BYTES = 40;

/** Thrown at bytes that are not UTF-8, after all text before them was returned. */
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
 * Decodes UTF-8 chunk by chunk into texts of whole characters. Before the first invalid byte, or an
 * earlier U+FFFD of its chunk, it throws {@link NotUtf8}. It skips a byte order mark at the start
 * (RFC 3629 section 6).
 */
export async function* utf8Texts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const strict = new TextDecoder('utf-8', { fatal: true });
  // It replaces invalid bytes, and so shows where they begin.
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
  // An incomplete character at the end.
  if (lenient.decode() !== '') throw notUtf8(line, last);
}

/** Removes the last bytes of a character whose first bytes are missing. */
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
