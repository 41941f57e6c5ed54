/** Thrown at bytes that are not UTF-8, after all text before them was returned. */
export class NotUtf8 extends Error {
  /** Whether the file begins with a UTF-16 byte order mark. */
  isUtf16 = false;
}

/** The byte order marks of UTF-16, in hexadecimal. */
const UTF_16_MARKS = ['fffe', 'feff'];

/**
 * Decodes UTF-8 chunk by chunk into texts of whole characters. Before the first invalid byte, or an
 * earlier U+FFFD of its chunk, it throws {@link NotUtf8}. It skips a byte order mark at the start
 * (RFC 3629 section 6).
 */
export async function* utf8Texts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const strict = new TextDecoder('utf-8', { fatal: true });
  // It replaces invalid bytes, and so shows where they begin.
  const lenient = new TextDecoder();
  let isStart = true;
  for await (const chunk of chunks) {
    const text = lenient.decode(chunk, { stream: true });
    try {
      strict.decode(chunk, { stream: true });
    } catch {
      const before = text.split('\ufffd', 1)[0]!;
      if (before !== '') yield before;
      const mark = Buffer.from(chunk.subarray(0, 2)).toString('hex');
      const isUtf16 = isStart && UTF_16_MARKS.includes(mark);
      throw Object.assign(new NotUtf8(), { isUtf16 });
    }
    isStart = false;
    if (text !== '') yield text;
  }
  // An incomplete character at the end.
  if (lenient.decode() !== '') throw new NotUtf8();
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
