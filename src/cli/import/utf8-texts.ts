/** Bytes that are not UTF-8; everything before them has been handed on. */
export class NotUtf8 extends Error {}

/**
 * Decodes UTF-8 piece by piece. Nothing is ever replaced: at the first wrong byte the text before it is handed on,
 * then {@link NotUtf8} is thrown. A byte order mark at the start is skipped (RFC 3629 section 6).
 *
 * @param chunks the bytes, cut anywhere
 * @returns the text, cut between characters; no piece is empty
 */
export async function* utf8Texts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let started = false;
  let rest: Uint8Array = new Uint8Array();
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = endOfWholeCharacters(bytes);
    rest = bytes.subarray(end);
    const whole = bytes.subarray(0, end);
    const decoded = decode(whole);
    let text = decoded ?? longestDecoded(whole);
    if (!started && text.charCodeAt(0) === 0xfeff) text = text.slice(1);
    started ||= end > 0;
    if (text !== '') yield text;
    if (decoded === undefined) throw new NotUtf8();
  }
  if (rest.length > 0) throw new NotUtf8();
}

// Not its stream mode: that cannot say where the wrong byte is. A byte order mark inside the file is text.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Looks for the wrong byte by halving: the bytes before it decode, those with it do not. */
function longestDecoded(bytes: Uint8Array): string {
  let good = 0;
  let bad = bytes.length;
  while (bad - good > 1) {
    const middle = good + Math.floor((bad - good) / 2);
    if (decode(bytes.subarray(0, endOfWholeCharacters(bytes.subarray(0, middle)))) === undefined)
      bad = middle;
    else good = middle;
  }
  return decode(bytes.subarray(0, endOfWholeCharacters(bytes.subarray(0, good)))) ?? '';
}

/**
 * The length of the bytes without a character that is cut off at their end. RFC 3629 section 3: the first byte of
 * a character tells its length, and no later byte looks like a first one.
 */
function endOfWholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) return characterLength(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

function characterLength(firstByte: number): number {
  if (firstByte >= 0xf0) return 4;
  return firstByte >= 0xe0 ? 3 : 2;
}
