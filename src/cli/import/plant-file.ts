import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { addAbortSignal, pipeline } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import { Failure } from '../failure.ts';
import { CHUNK_BYTES, ROW_LENGTH_MAX } from './limits.ts';
import { ROWS_SENT } from './plant-row.ts';
import { startsWith, utf8Texts } from './utf8-texts.ts';

export const STANDARD_INPUT = '-';

export type PlantFileFormat = 'CSV' | 'JSON Lines' | 'JSON array';

export interface PlantFile {
  name: string;
  format: PlantFileFormat;
  /** Chunks of the complete text, decompressed and decoded. */
  texts: AsyncGenerator<string, void, undefined>;
}

export function plantFileName(path: string): string {
  return path === STANDARD_INPUT ? 'standard input' : path;
}

/**
 * Checks that a file can be read, before the first plant is sent.
 *
 * @returns its size in bytes; undefined if unknown (standard input or a pipe)
 * @throws {Failure} if it is missing, unreadable, a folder or empty
 */
export async function checkPlantFile(path: string): Promise<number | undefined> {
  if (path === STANDARD_INPUT) return undefined;
  try {
    const status = await stat(path);
    if (status.isDirectory()) throw new Failure(`${path} is a folder; name the files in it`);
    await access(path, constants.R_OK);
    if (!status.isFile()) return undefined;
    if (status.size === 0) throw empty(path);
    return status.size;
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Opens a file, decompresses gzip, and detects the format by the first character.
 *
 * @param signal ends the reading at once, with an AbortError
 * @param onBytes called with the number of bytes read, before decompression
 * @throws {Failure} here or from `texts`, if the file is empty, unreadable or damaged
 * @throws {NotUtf8} here or from `texts`
 */
export async function openPlantFile(
  path: string,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<PlantFile> {
  const name = plantFileName(path);
  const texts = utf8Texts(plainBytes(name, storedBytes(path, signal, onBytes)));
  let start = '';
  while (!NOT_BLANK.test(start) && start.length < ROW_LENGTH_MAX) {
    const next = await texts.next();
    if (next.done) break;
    start += next.value;
  }
  const first = NOT_BLANK.exec(start)?.[0];
  if (first === undefined) throw empty(name);
  let format: PlantFileFormat = 'CSV';
  if (first === '[') format = 'JSON array';
  if (first === '{') format = 'JSON Lines';
  return { name, format, texts: joined(start, texts) };
}

const NOT_BLANK = /[^ \t\r\n]/;

async function* storedBytes(
  path: string,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer, void, undefined> {
  const stream =
    path === STANDARD_INPUT ? process.stdin : createReadStream(path, { highWaterMark: CHUNK_BYTES });
  addAbortSignal(signal, stream);
  for await (const chunk of stream) {
    onBytes(chunk.length);
    yield chunk;
  }
}

/** RFC 1952 section 2.3.1: ID1 = 31, ID2 = 139. */
const GZIP = Buffer.from([31, 139]);

/** The bytes of a file, decompressed if they are gzip. Read errors become a {@link Failure}. */
async function* plainBytes(
  name: string,
  stored: AsyncGenerator<Buffer, void, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    let start = Buffer.alloc(0);
    while (start.length < GZIP.length) {
      const next = await stored.next();
      if (next.done) break;
      start = Buffer.concat([start, next.value]);
    }
    const bytes = joined(start, stored);
    // The callback is empty: an error of either stream ends the loop that reads the result.
    const unpacked = (): Gunzip => pipeline(bytes, createGunzip({ chunkSize: CHUNK_BYTES }), () => {});
    yield* startsWith(start, GZIP) ? unpacked() : bytes;
  } catch (error) {
    throw unreadable(name, error);
  }
}

async function* joined<T>(
  first: T,
  rest: AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  yield first;
  yield* rest;
}

function empty(name: string): Failure {
  return new Failure(`${name} is empty: it contains no plant`);
}

/** Converts an error of the file system or of gzip to a Failure; returns any other error. */
function unreadable(name: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof Failure || code === undefined || code === 'ABORT_ERR') return error;
  if (code === 'ENOENT') return new Failure(`${name} does not exist`);
  if (code.startsWith('Z_')) {
    return new Failure(
      `${name} is damaged or incomplete: gzip data cannot be decompressed (${code}); ${ROWS_SENT}`,
    );
  }
  return new Failure(`${name} cannot be read (${code})`);
}
