import { constants, createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { addAbortSignal, pipeline } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import { Failure } from '../../../src/cli/shared/failure.ts';

export const STANDARD_INPUT = '-';
/** Bytes that are read or decompressed at a time. */
export const CHUNK_BYTES = 64 * 1024;

export interface BytesOptions {
  /** Ends the reading at once, with an AbortError. */
  stop: AbortSignal;
  onNote: (line: string) => void;
  /** Called with the number of bytes read, before decompression. */
  onBytes?: ((bytes: number) => void) | undefined;
}

/** Gzip data is damaged or incomplete. Even the text before the damage can be wrong. */
export class DamagedGzip extends Failure {}

/** The name of a file in messages. */
export function fileName(path: string): string {
  return path === STANDARD_INPUT ? 'standard input' : path;
}

/** @returns bytes; undefined for standard input and pipes. @throws {Failure} if it is missing */
export async function plantFileSize(path: string): Promise<number | undefined> {
  if (path === STANDARD_INPUT) return undefined;
  try {
    const status = await stat(path);
    if (status.isDirectory()) throw new Failure(`${path} is a folder; name the files in it`);
    return status.isFile() ? status.size : undefined;
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** @returns the sum of the sizes; undefined if one is unknown */
export function totalSize(sizes: readonly (number | undefined)[]): number | undefined {
  const known = sizes.filter(size => size !== undefined);
  return known.length < sizes.length ? undefined : known.reduce((sum, size) => sum + size, 0);
}

export type Bytes = AsyncGenerator<Buffer, void, undefined>;

/** Reads chunks until they have this many bytes, or end. */
export async function startOf(bytes: Bytes, length: number): Promise<Buffer> {
  let start = Buffer.alloc(0);
  while (start.length < length) {
    const next = await bytes.next();
    if (next.done) break;
    start = Buffer.concat([start, next.value]);
  }
  return start;
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

async function* storedBytes(path: string, stop: AbortSignal, onBytes: BytesOptions['onBytes']): Bytes {
  // A stream that is aborted before the loop listens to it would end the process.
  stop.throwIfAborted();
  const isStdin = path === STANDARD_INPUT;
  const stream = isStdin ? process.stdin : createReadStream(path, { highWaterMark: CHUNK_BYTES });
  for await (const chunk of addAbortSignal(stop, stream)) {
    onBytes?.(chunk.length);
    yield chunk;
  }
}

/** RFC 1952 section 2.3.1: ID1 = 31, ID2 = 139. */
const GZIP = Buffer.from([31, 139]);

/** The callback is empty, because an error of either stream ends the loop that reads the result. */
function unpacked(bytes: Bytes): Gunzip {
  return pipeline(bytes, createGunzip({ chunkSize: CHUNK_BYTES }), () => {});
}

/** The bytes of a file, decompressed if they are gzip. Read errors become a {@link Failure}. */
export async function* plainBytes(path: string, { stop, onNote, onBytes }: BytesOptions): Bytes {
  const name = fileName(path);
  try {
    const isFile = (await plantFileSize(path)) !== undefined;
    if (!isFile && path !== STANDARD_INPUT) stop.addEventListener('abort', () => void endWaitForWriter(path));
    await using stored = storedBytes(path, stop, onBytes);
    const start = await startOf(stored, GZIP.length);
    const bytes = joined(start, stored);
    if (!start.subarray(0, GZIP.length).equals(GZIP)) return yield* bytes;
    if (!isFile)
      onNote(`${name} is a gzip stream: its checksum can be verified only after its plants are sent`);
    yield* unpacked(bytes);
  } catch (error) {
    throw unreadable(name, error);
  }
}

/** Opens a FIFO for writing for a moment, so that an `open` for reading waits no longer. */
async function endWaitForWriter(path: string): Promise<void> {
  await using _ = await open(path, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => undefined);
}

/** @returns a Failure for an error of the file system or of gzip; any other error unchanged */
function unreadable(name: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof Failure || code === undefined || code === 'ABORT_ERR') return error;
  if (code === 'ENOENT') return new Failure(`${name} does not exist`);
  const damage = `gzip data cannot be decompressed (${code}); get a new copy`;
  if (code.startsWith('Z_')) return new DamagedGzip(`${name} is damaged or incomplete: ${damage}`);
  return new Failure(`${name} cannot be read (${code})`);
}
