import { closeSync, existsSync, openSync, writeFileSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import type { ErrorBody } from '../../contract/errors.ts';
import { Failure } from '../failure.ts';
import { type PlantFileFormat, STANDARD_INPUT } from './plant-file.ts';
import type { PlantRow } from './plant-row.ts';

/**
 * The rows of one input file that were refused, with the reasons. The file comes into being with its first row. A
 * row is with the operating system before {@link write} returns, so nothing is lost however the process ends.
 */
export class RejectsFile {
  /** Where the rejected rows are; undefined while there are none. */
  path: string | undefined;
  readonly #wantedPath: string;
  readonly #mayBeNumbered: boolean;
  #descriptor: number | undefined;

  /**
   * @param mayBeNumbered whether `x.rejects-2.csv` and so on may take the place of a `x.rejects.csv` that exists;
   *   no file is ever overwritten, for somebody may be mending it
   */
  constructor(path: string, mayBeNumbered: boolean) {
    this.#wantedPath = path;
    this.#mayBeNumbered = mayBeNumbered;
  }

  write(row: PlantRow, fault: ErrorBody): void {
    try {
      if (this.#descriptor === undefined) this.#create(row.rejectsHeader());
      writeFileSync(this.#descriptor!, row.rejectsLine(fault));
    } catch (error) {
      throw unwritable(this.path ?? this.#wantedPath, error);
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }

  #create(header: string): void {
    const { dir, name, ext } = path.parse(this.#wantedPath);
    for (let number = 1; this.#descriptor === undefined; number++) {
      const file = number === 1 ? this.#wantedPath : path.join(dir, `${name}-${number}${ext}`);
      try {
        this.#descriptor = openSync(file, 'wx');
        this.path = file;
      } catch (error) {
        if (!this.#mayBeNumbered || (error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
    writeFileSync(this.#descriptor, header);
  }
}

/**
 * Makes sure, before anything is sent, that a rejects file could be made.
 *
 * @param mustBeNew whether it is a fault that the file exists already
 * @throws {Failure} when it could not
 */
export async function checkRejectsPath(file: string, mustBeNew: boolean): Promise<void> {
  if (mustBeNew && existsSync(file)) {
    throw new Failure(
      `${file} exists already, and rejected rows never overwrite a file; give --rejects another name`,
    );
  }
  try {
    await access(path.dirname(file), constants.W_OK | constants.X_OK);
  } catch (error) {
    throw unwritable(file, error);
  }
}

/**
 * Where the rejected rows of an input go if nothing else is said: the input's base name with `.rejects` in it, in the
 * current folder. The rejects of a rejects file go beside it, not to `x.rejects.rejects.csv`.
 */
export function defaultRejectsPath(input: string, format: PlantFileFormat): string {
  const base = path
    .basename(input === STANDARD_INPUT ? '' : input)
    .replace(/\.gz$/i, '')
    .replace(/\.(csv|json|jsonl|ndjson|txt)$/i, '')
    .replace(/\.rejects(-[0-9]+)?$/, '');
  return `${base === '' ? 'plants' : base}.rejects.${format === 'CSV' ? 'csv' : 'jsonl'}`;
}

function unwritable(file: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === undefined) return error;
  return new Failure(
    `rejected rows cannot be written to ${file} (${code}); name another file with --rejects`,
  );
}
