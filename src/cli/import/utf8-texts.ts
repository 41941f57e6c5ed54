import { isUtf8 } from 'node:buffer';

/** Bytes that are not UTF-8; everything before them has been handed on. */
export class NotUtf8 extends Error {
  /** Whether the file begins with a byte order mark of UTF-16. */
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
 * Decodes UTF-8 chunk by chunk. Nothing is ever replaced: the text before the first wrong byte is handed on, then
 * {@link NotUtf8} is thrown. A byte order mark at the start is skipped (RFC 3629 section 6).
 *
 * @returns the text, cut between characters; no chunk is empty
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
    // More than a character that is cut off.
    if (rest.length >= CHARACTER_BYTES_MAX) break;
  }
  if (rest.length > 0) throw new NotUtf8(isStart && UTF_16_MARKS.some(mark => startsWith(rest, mark)));
}

export function startsWith(bytes: Buffer, mark: Buffer): boolean {
  return bytes.subarray(0, mark.length).equals(mark);
}

/** The length of the whole characters that bytes begin with: up to a wrong byte, or to a last one that may be cut off. */
function textLength(bytes: Buffer): number {
  for (let cut = 0; cut < CHARACTER_BYTES_MAX && cut <= bytes.length; cut++)
    if (isUtf8(bytes.subarray(0, bytes.length - cut))) return bytes.length - cut;
  // Where lenient decoding has replaced something, the bytes differ from then on.
  const replaced = Buffer.from(bytes.toString('utf8'));
  return textLength(
    bytes.subarray(
      0,
      bytes.findIndex((byte, index) => byte !== replaced[index]),
    ),
  );
}
