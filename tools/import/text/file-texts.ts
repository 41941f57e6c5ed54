import { Failure } from '../../../src/cli/shared/failure.ts';
import {
  type Bytes,
  type BytesOptions,
  fileName,
  joined,
  plainBytes,
  plantFileSize,
  startOf,
} from './file-bytes.ts';
import { LineCounter, type Texts } from './line-ends.ts';
import { FORMAT_BYTES, startReadingOf } from './other-formats.ts';
import { Utf8Evidence } from './utf8-evidence.ts';
import { contentOf, utf8Texts } from './utf8-texts.ts';

const UTF_8 = 'utf-8';
const UTF_16 = /^utf-16/;
const UNDEFINED = /[\u0080-\u009f\p{Co}]/gu;
/** The byte 0x80 as `escapedText` shows it. Alone it is never UTF-8. */
const INVALID_BYTE = '\udc80';

/** The bytes of a text, and how to decode them. */
interface Encoded {
  encoding: string;
  hasMark: boolean;
  bytes: Bytes;
}

/**
 * Decodes a file or a stream. In UTF-8, each invalid byte becomes a surrogate, as `escapedText` says.
 *
 * A stream cannot be verified before. Its encoding is decided chunk by chunk, so the rows before the
 * first chunk that is in doubt are returned.
 *
 * @param wanted the name that TextDecoder gives the encoding; undefined: UTF-8, or as a byte order
 *   mark says
 * @throws {Failure} if the file is not in the encoding, or no text
 */
export async function* fileTexts(path: string, wanted: string | undefined, options: BytesOptions): Texts {
  const name = fileName(path);
  const isFile = (await plantFileSize(path)) !== undefined;
  const { encoding, hasMark, bytes } = await encodedBytes(path, wanted, options);
  if (encoding !== UTF_8) return yield* decodedTexts(name, encoding, bytes);
  if (isFile || wanted === UTF_8) return yield* utf8Texts(bytes);
  const evidence = new Utf8Evidence(name, hasMark);
  for await (const text of utf8Texts(bytes)) {
    evidence.add(text);
    evidence.check();
    yield text;
  }
}

/**
 * Verifies the encoding of a file, and the checksum of gzip. It reads the file once to see whether it
 * is UTF-8, and again only if its encoding is still in doubt.
 *
 * @throws {Failure} as {@link fileTexts} does
 */
export async function verifyTexts(
  path: string,
  wanted: string | undefined,
  options: BytesOptions,
): Promise<void> {
  const name = fileName(path);
  const { encoding, hasMark, bytes } = await encodedBytes(path, wanted, options);
  const content = await contentOf(bytes);
  if (encoding === UTF_8 && (content !== 'other' || wanted === UTF_8)) return;
  if (encoding !== UTF_8 && content === 'UTF-8' && !UTF_16.test(encoding))
    throw new Failure(
      `${name} is valid UTF-8, as a rejects file is, and ${encoding} would change its text; ` +
        `import it without --encoding, or convert it if you are sure (iconv -f ${encoding} -t UTF-8 FILE > NEW_FILE)`,
    );
  const doubtful = (await encodedBytes(path, wanted, { ...options, onBytes: undefined })).bytes;
  if (encoding !== UTF_8) for await (const _ of decodedTexts(name, encoding, doubtful));
  else {
    const evidence = new Utf8Evidence(name, hasMark);
    for await (const text of utf8Texts(doubtful)) evidence.add(text);
    evidence.check();
  }
}

async function* decodedTexts(name: string, encoding: string, bytes: Bytes): Texts {
  const strict = new TextDecoder(encoding, { fatal: true });
  /** Replaces invalid bytes by U+FFFD, which shows where they begin. */
  const lenient = new TextDecoder(encoding);
  const lines = new LineCounter();
  const decode = (chunk?: Buffer): string => {
    const stream = chunk !== undefined;
    try {
      return strict.decode(chunk, { stream });
    } catch {
      const before = lenient.decode(chunk, { stream }).split('\ufffd', 1)[0]!;
      throw new Failure(
        `${name} is not ${encoding}: line ${lines.lineAfter(before)} has bytes that ${encoding} does not have; ` +
          'give the name of its encoding with --encoding',
      );
    }
  };
  for await (const chunk of bytes) {
    const text = decode(chunk);
    // A decoder that did not see the earlier bytes would divide characters wrongly.
    lenient.decode(chunk, { stream: true });
    lines.add(text);
    if (text !== '') yield escapedUndefined(text, encoding);
  }
  const last = decode();
  if (last !== '') yield escapedUndefined(last, encoding);
}

/**
 * A decoder makes a control character or a private-use character of a byte that the encoding does
 * not define. Each becomes an invalid byte, so that its row is rejected. Unicode defines both.
 */
function escapedUndefined(text: string, encoding: string): string {
  return UTF_16.test(encoding) ? text : text.replace(UNDEFINED, INVALID_BYTE);
}

async function encodedBytes(
  path: string,
  wanted: string | undefined,
  options: BytesOptions,
): Promise<Encoded> {
  const bytes = plainBytes(path, options);
  try {
    const start = await startOf(bytes, FORMAT_BYTES);
    const { encoding, hasMark } = encodingOf(path, start, wanted, options);
    return { encoding, hasMark, bytes: joined(start, bytes) };
  } catch (error) {
    await bytes.return();
    throw error;
  }
}

/** @throws {Failure} if the first bytes show that this is no text, or contradict the option */
function encodingOf(
  path: string,
  start: Buffer,
  wanted: string | undefined,
  { onNote }: BytesOptions,
): Omit<Encoded, 'bytes'> {
  const name = fileName(path);
  const shown = startReadingOf(start);
  switch (shown?.kind) {
    case 'other':
      throw new Failure(`${name} is ${shown.what}`);
    case 'mark': {
      const is = `has the byte order mark of ${shown.encoding.toUpperCase()}`;
      const isWanted =
        wanted === shown.encoding || (UTF_16.test(wanted ?? '') && UTF_16.test(shown.encoding));
      if (wanted !== undefined && !isWanted)
        throw new Failure(`${name} ${is}, so it is not ${wanted}; import it without --encoding`);
      if (wanted === undefined && shown.encoding !== UTF_8) onNote(`${name} ${is}, and is read so`);
      return { encoding: shown.encoding, hasMark: true };
    }
    case 'likely': {
      const likely = shown.encoding.toUpperCase();
      if (wanted === undefined)
        throw new Failure(
          `${name} is ${likely} without a byte order mark; import it with --encoding ${likely}`,
        );
      break;
    }
  }
  return { encoding: wanted ?? UTF_8, hasMark: false };
}
