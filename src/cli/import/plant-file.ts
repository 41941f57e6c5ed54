import { constants, createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { addAbortSignal, pipeline } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import { Failure } from '../output/failure.ts';
import type { CsvForm } from './csv-columns.ts';
import { csvRows } from './csv-rows.ts';
import { encodingQuestion } from './encoding-question.ts';
import { jsonArrayRows, jsonLinesRows } from './json-rows.ts';
import { countLineEnds } from './line-ends.ts';
import { type MadeIds, OWN_IDS } from './made-ids.ts';
import { FORMAT_BYTES, otherFormatOf } from './other-formats.ts';
import { EMPTY, type PlantRows, ROW_LENGTH_MAX } from './plant-row.ts';
import { joined, NotUtf8, utf8Texts } from './utf8-texts.ts';

export const STANDARD_INPUT = '-';
/** Bytes that are read or decompressed at a time. */
export const CHUNK_BYTES = 64 * 1024;

export interface Reading {
  form: CsvForm;
  /** Makes the ids; undefined if the files have them. */
  ids?: MadeIds | undefined;
  /** Ends the reading at once, with an AbortError. */
  stop: AbortSignal;
  onNote: (line: string) => void;
  /** Called with the number of bytes read, before decompression. */
  onBytes?: (bytes: number) => void;
  /** If given, a gzip file is verified before its first row. Called meanwhile as `onBytes`. */
  onVerified?: (bytes: number) => void;
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

/** The start of a file that shows its format and, in CSV, its delimiter. */
const START = /^\s*[[{]|[^\s,;|"][^\r\n]*[\r\n]/;
/** Lines without text, except a last CR that may be half of a CRLF. */
const BLANK_LINES = /^\s*(?:\n|\r(?!\n|$))/;

/** Reads the rows, in the format that the first character shows. @throws {Failure} at a fault */
export async function* fileRows(path: string, reading: Reading): PlantRows {
  const name = fileName(path);
  let lastRow = 0;
  try {
    const texts = utf8Texts(textBytes(name, plainBytes(path, name, reading)));
    let start = '';
    let line = 1;
    while (!START.test(start) && start.length < (/\S/.test(start) ? CHUNK_BYTES : ROW_LENGTH_MAX)) {
      const next = await texts.next();
      if (next.done) break;
      start += next.value;
      const blank = BLANK_LINES.exec(start)?.[0] ?? '';
      line += countLineEnds(blank);
      start = start.slice(blank.length);
    }
    const first = /\S/.exec(start)?.[0];
    if (first === undefined) throw new Failure(`${name} ${EMPTY}`);
    const all = joined(start, texts);
    const isJson = first === '[' || first === '{';
    const rowsOfJson = first === '[' ? jsonArrayRows : jsonLinesRows;
    const batches = isJson
      ? rowsOfJson(name, all, line, reading.ids)
      : csvRows(name, all, start, { ...reading, line });
    for await (const rows of batches) {
      lastRow = rows.at(-1)?.number ?? lastRow;
      // CSV has a header, which has shown that its rows have no ids.
      const withId = isJson ? rows.findIndex(({ madeId }) => madeId?.kind === 'own id') : -1;
      if (withId !== 0) yield withId < 0 ? rows : rows.slice(0, withId);
      if (withId >= 0) throw new Failure(`${name}: ${rows[withId]!.place()} has a member id; ${OWN_IDS}`);
    }
  } catch (error) {
    if (!(error instanceof NotUtf8)) throw error;
    // Conversion would damage the other rows of a file that is UTF-8 except for this one.
    throw new Failure(
      `${name} is not UTF-8: line ${error.line} (near row ${lastRow + 1}) has ${encodingQuestion(error.bytes, error.position)}; ` +
        'which encoding is right? Convert the file from it (iconv -f ENCODING -t UTF-8 FILE > NEW_FILE), ' +
        'or save the spreadsheet as CSV UTF-8; if other lines are UTF-8, correct this line in an editor',
    );
  }
}

type Bytes = AsyncGenerator<Buffer, void, undefined>;

/** @throws {Failure} if the first bytes show that this is no text in UTF-8 */
async function* textBytes(name: string, bytes: Bytes): Bytes {
  await using rest = bytes;
  const start = await startOf(rest, FORMAT_BYTES);
  const format = otherFormatOf(start);
  if (format !== undefined) throw new Failure(`${name} is ${format}`);
  yield* joined(start, rest);
}

/** Reads chunks until they have this many bytes, or end. */
async function startOf(bytes: Bytes, length: number): Promise<Buffer> {
  let start = Buffer.alloc(0);
  while (start.length < length) {
    const next = await bytes.next();
    if (next.done) break;
    start = Buffer.concat([start, next.value]);
  }
  return start;
}

async function* storedBytes(path: string, stop: AbortSignal, onBytes: Reading['onBytes']): Bytes {
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

/**
 * The bytes of a file, decompressed if they are gzip. With `onVerified`, a gzip file is first read
 * to its end, to verify its checksums. Read errors become a {@link Failure}.
 */
async function* plainBytes(
  path: string,
  name: string,
  { stop, onNote, onBytes, onVerified }: Reading,
): Bytes {
  try {
    const isFile = (await plantFileSize(path)) !== undefined;
    if (!isFile && path !== STANDARD_INPUT) stop.addEventListener('abort', () => void endWaitForWriter(path));
    await using stored = storedBytes(path, stop, onBytes);
    const start = await startOf(stored, GZIP.length);
    const bytes = joined(start, stored);
    if (!start.subarray(0, GZIP.length).equals(GZIP)) return yield* bytes;
    if (!isFile)
      onNote(`${name} is a gzip stream: its checksum can be verified only after its plants are sent`);
    else if (onVerified) for await (const _ of unpacked(storedBytes(path, stop, onVerified)));
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
