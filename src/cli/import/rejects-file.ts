import { closeSync, existsSync, openSync, writeFileSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import type { ErrorBody } from '../../contract/errors.ts';
import { Failure } from '../output/failure.ts';
import { STANDARD_INPUT } from './plant-file.ts';
import type { PlantRow } from './plant-row.ts';

/**
 * The rejected rows of one input file, with the reasons. The first row creates the file. The
 * operating system has each row before {@link write} returns, so the end of the process loses none.
 */
export class RejectsFile {
  /** Path of the file; undefined while no row is rejected. */
  path: string | undefined;
  readonly #input: string;
  readonly #wantedPath: string | undefined;
  #descriptor: number | undefined;

  /**
   * @param wantedPath undefined: a default path, such as `x.rejects-2.csv` if `x.rejects.csv`
   *   exists. No file is ever overwritten, because a user may be correcting its rows.
   */
  constructor(input: string, wantedPath: string | undefined) {
    this.#input = input;
    this.#wantedPath = wantedPath;
  }

  write(row: PlantRow, fault: ErrorBody): void {
    try {
      if (this.#descriptor === undefined) this.#create(row.rejectsHeader());
      writeFileSync(this.#descriptor!, row.rejectsLine(fault));
    } catch (error) {
      throw unwritable(this.path ?? String((error as NodeJS.ErrnoException).path), error);
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }

  #create(header: string): void {
    const wanted = this.#wantedPath ?? defaultRejectsPath(this.#input, header === '' ? 'jsonl' : 'csv');
    const { dir, name, ext } = path.parse(wanted);
    for (let number = 1; this.#descriptor === undefined; number++) {
      const file = number === 1 ? wanted : path.join(dir, `${name}-${number}${ext}`);
      try {
        this.#descriptor = openSync(file, 'wx');
        this.path = file;
      } catch (error) {
        if (this.#wantedPath !== undefined || (error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
    writeFileSync(this.#descriptor, header);
  }
}

/** @throws {Failure} if a rejects file cannot be created, or exists and must be new */
export async function checkRejectsPath(file: string, mustBeNew: boolean): Promise<void> {
  const taken = `${file} already exists, and a rejects file never overwrites a file`;
  if (mustBeNew && existsSync(file)) throw new Failure(`${taken}; give another name with --rejects`);
  try {
    await access(path.dirname(file), constants.W_OK | constants.X_OK);
  } catch (error) {
    throw unwritable(file, error);
  }
}

/**
 * The base name of the input with `.rejects`, in the current folder. Rejects of `x.rejects.csv` go
 * to `x.rejects-2.csv`, not to `x.rejects.rejects.csv`.
 */
export function defaultRejectsPath(input: string, type: 'csv' | 'jsonl'): string {
  const base = path
    .basename(input === STANDARD_INPUT ? '' : input)
    .replace(/\.gz$/i, '')
    .replace(/\.(csv|json|jsonl|ndjson|txt)$/i, '')
    .replace(/\.rejects(-[0-9]+)?$/, '');
  return `${base === '' ? 'plants' : base}.rejects.${type}`;
}

function unwritable(file: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  const message = `rejected rows cannot be written to ${file} (${code}); name another file with --rejects`;
  return code === undefined ? error : new Failure(message);
}
