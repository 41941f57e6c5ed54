import { isUtf8 } from 'node:buffer';

/** Bytes that are not UTF-8; everything before them has been handed on. */
export class NotUtf8 extends Error {}

/** The longest character in bytes (RFC 3629 section 3). */
const CHARACTER_BYTES_MAX = 4;
const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/**
 * Decodes UTF-8 piece by piece. Nothing is ever replaced: at the first wrong byte the text before it is handed on,
 * then {@link NotUtf8} is thrown. A byte order mark at the start is skipped (RFC 3629 section 6).
 *
 * @param chunks the bytes, cut anywhere
 * @returns the text, cut between characters; no piece is empty
 */
export async function* utf8Texts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let isStart = true;
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk]);
    const wholeLength = lengthOfWholeCharacters(bytes);
    const end = wholeLength ?? lengthBeforeWrongByte(bytes);
    rest = bytes.subarray(end);
    const text = bytes.toString(
      'utf8',
      isStart && startsWith(bytes, BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0,
      end,
    );
    if (end > 0) isStart = false;
    if (text !== '') yield text;
    if (wholeLength === undefined) throw new NotUtf8();
  }
  if (rest.length > 0) throw new NotUtf8();
}

export function startsWith(bytes: Buffer, mark: Buffer): boolean {
  return bytes.subarray(0, mark.length).equals(mark);
}

/** @returns the length without a last character that may be cut off; undefined when a byte before that is wrong */
function lengthOfWholeCharacters(bytes: Buffer): number | undefined {
  for (let cut = 0; cut < CHARACTER_BYTES_MAX && cut <= bytes.length; cut++)
    if (isUtf8(bytes.subarray(0, bytes.length - cut))) return bytes.length - cut;
  return undefined;
}

/** Where lenient decoding has replaced something, the bytes differ from then on. */
function lengthBeforeWrongByte(bytes: Buffer): number {
  const replaced = Buffer.from(bytes.toString('utf8'));
  const different = bytes.findIndex((byte, index) => byte !== replaced[index]);
  return lengthOfWholeCharacters(bytes.subarray(0, different)) ?? 0;
}
