import { closeSync, openSync, writeFileSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { Failure } from '../../../src/cli/shared/failure.ts';
import { rejectExisting } from '../../../src/cli/shared/new-file.ts';
import type { ErrorBody } from '../../../src/core/contract/errors.ts';
import type { PlantRow, RejectsFormat } from '../rows/plant-row.ts';
import { STANDARD_INPUT } from '../text/file-bytes.ts';
import { numberedPaths } from './numbered-paths.ts';

interface OpenFile {
  path: string;
  descriptor: number;
}

/**
 * The rejected rows of one input file, with the reasons. The first row creates the file. The
 * operating system has each row when `write` returns, so a process that is killed loses no row.
 */
export class RejectsFile {
  readonly #input: string;
  readonly #wanted: string | undefined;
  #file: OpenFile | undefined;

  /** @param wanted the path that the user gave; undefined: a default path that is not in use */
  constructor(input: string, wanted: string | undefined) {
    this.#input = input;
    this.#wanted = wanted;
  }

  /** @throws {Failure} if the row cannot be written */
  write(row: PlantRow, fault: ErrorBody): void {
    try {
      if (this.#file === undefined) {
        const format = row.rejectsFormat();
        this.#file = this.#create(format.kind);
        if (format.kind === 'csv') writeFileSync(this.#file.descriptor, format.header);
      }
      writeFileSync(this.#file.descriptor, row.rejectsLine(fault));
    } catch (error) {
      throw unwritable(this.#file?.path ?? String((error as NodeJS.ErrnoException).path), error);
    }
  }

  /** @returns the path of the file; undefined if no row was rejected */
  close(): string | undefined {
    if (this.#file !== undefined) closeSync(this.#file.descriptor);
    return this.#file?.path;
  }

  #create(format: RejectsFormat['kind']): OpenFile {
    if (this.#wanted === undefined) return createUnused(defaultRejectsPath(this.#input, format));
    return { path: this.#wanted, descriptor: openSync(this.#wanted, 'wx') };
  }
}

/**
 * Creates a file such as `x.rejects-2.csv` if `x.rejects.csv` exists. No file is ever overwritten,
 * because a user may be correcting its rows.
 */
function createUnused(wanted: string): OpenFile {
  for (const file of numberedPaths(wanted))
    try {
      return { path: file, descriptor: openSync(file, 'wx') };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  // Names never end, which TypeScript does not know.
  throw new Error('no name is free');
}

/** @throws {Failure} if a rejects file cannot be created, or exists and must be new */
export async function checkRejectsPath(file: string, mustBeNew: boolean): Promise<void> {
  if (mustBeNew) rejectExisting(file, 'name another file with --rejects');
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
export function defaultRejectsPath(input: string, format: RejectsFormat['kind']): string {
  const base = path
    .basename(input === STANDARD_INPUT ? '' : input)
    .replace(/\.gz$/i, '')
    .replace(/\.(csv|json|jsonl|ndjson|txt)$/i, '')
    .replace(/\.rejects(-[0-9]+)?$/, '');
  return `${base === '' ? 'plants' : base}.rejects.${format}`;
}

function unwritable(file: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  const message = `rejected rows cannot be written to ${file} (${code}); name another file with --rejects`;
  return code === undefined ? error : new Failure(message);
}
