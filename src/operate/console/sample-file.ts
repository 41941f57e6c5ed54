import { readFileSync, statSync } from 'node:fs';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { StoredRing } from './sample-ring.ts';
import type { Samples } from './samples.ts';

/** A process that is killed loses the samples of this time. */
const WRITE_INTERVAL_MS = 5 * 60_000;
/** A longer file is not of this program. */
const FILE_MAX_BYTES = 5_000_000;
/** Another number means another form of the file. */
const FORM = 1;
/** How each SQLite file begins (https://sqlite.org/fileformat.html). */
const SQLITE_MAGIC = Buffer.from('SQLite format 3\0');

interface FileHeader extends Omit<StoredRing, 'columns'> {
  form: number;
  names: string[];
}

/**
 * The samples of 24 hours in a file beside an SQLite store, so that they survive a restart. Only
 * plots need them, so a damaged file is ignored, and a failed write is only logged.
 *
 * The file has a line with its checksum, a line with a {@link FileHeader}, and the columns.
 */
export class SampleFile implements AsyncDisposable {
  readonly #path: string;
  readonly #samples: Samples;
  readonly #onError: (cause: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  /** Settles when the last write has ended. */
  #written: Promise<void> = Promise.resolve();

  constructor(path: string, samples: Samples, onError: (cause: unknown) => void) {
    this.#path = path;
    this.#samples = samples;
    this.#onError = onError;
    const stored = readSamples(path);
    if (stored !== undefined) samples.restore(stored);
    this.#timer = setInterval(() => this.#write(), WRITE_INTERVAL_MS).unref();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#write();
    await this.#written;
  }

  /** Makes the content at once, which takes a millisecond, and writes it after the last write. */
  #write(): void {
    const content = fileContent(this.#samples.stored());
    this.#written = this.#written.then(() => replaceFile(this.#path, content)).catch(this.#onError);
  }
}

/** A process that is killed meanwhile leaves the old file. */
async function replaceFile(path: string, content: Uint8Array): Promise<void> {
  const partial = `${path}.partial`;
  for (const replaced of [path, partial]) await rejectStore(replaced);
  await rm(partial, { force: true });
  try {
    // A new file: an existing one may be a link to another file, or a pipe, which would wait for a reader.
    await writeFile(partial, content, { mode: 0o600, flag: 'wx' });
    await rename(partial, path);
  } catch (error) {
    // On a full disk, its bytes would be missing to the store.
    await rm(partial, { force: true });
    throw error;
  }
}

/** Somebody may have given a store or a backup this name. */
async function rejectStore(path: string): Promise<void> {
  if (!isFile(path)) return;
  await using file = await open(path);
  const { buffer } = await file.read({ buffer: Buffer.alloc(SQLITE_MAGIC.length), position: 0 });
  if (buffer.equals(SQLITE_MAGIC)) throw new Error(`${path} is an SQLite file; give it another name`);
}

/** Reading a pipe or a device may never end. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function fileContent({ columns, ...ring }: StoredRing): Uint8Array {
  const header: FileHeader = { form: FORM, ...ring, names: [...columns.keys()] };
  const values = [...columns.values()].map(
    ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
  );
  const content = Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...values]);
  return Buffer.concat([Buffer.from(`${crc32(content)}\n`), content]);
}

/** @returns undefined if there is no file, or if it is damaged or has another form */
function readSamples(path: string): StoredRing | undefined {
  try {
    if (!isFile(path) || statSync(path).size > FILE_MAX_BYTES) return undefined;
    const file = readFileSync(path);
    const content = file.subarray(file.indexOf('\n') + 1);
    if (file.toString('latin1', 0, file.length - content.length) !== `${crc32(content)}\n`) return undefined;
    const headerEnd = content.indexOf('\n');
    const { form, names, ...ring } = JSON.parse(content.toString('utf8', 0, headerEnd)) as FileHeader;
    if (form !== FORM) return undefined;
    // A copy, because the values of the file are not aligned.
    const { buffer } = Uint8Array.from(content.subarray(headerEnd + 1));
    const columnOf = (index: number) => new Float64Array(buffer, index * ring.length * 8, ring.length);
    return { ...ring, columns: new Map(names.map((name, index) => [name, columnOf(index)])) };
  } catch {
    return undefined;
  }
}
