import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { Failure } from '../../../src/cli/shared/failure.ts';
import { rejectExisting } from '../../../src/cli/shared/new-file.ts';
import type { ErrorBody } from '../../../src/core/contract/errors.ts';
import type { PlantRow, RejectsFormat } from '../rows/plant-row.ts';
import { STANDARD_INPUT } from '../text/file-bytes.ts';
import { NewLinesFile, numberedPaths } from '../written/new-lines-file.ts';

/** The rejected rows of one input file, with the reasons. The first row creates the file. */
export class RejectsFile implements Disposable {
  readonly #input: string;
  readonly #wanted: string | undefined;
  #file: NewLinesFile | undefined;

  /** @param wanted the path that the user gave; undefined: a default path that is not in use */
  constructor(input: string, wanted: string | undefined) {
    this.#input = input;
    this.#wanted = wanted;
  }

  /** Undefined if no row was rejected. */
  get path(): string | undefined {
    return this.#file?.path;
  }

  /** @throws {Failure} if the row cannot be written */
  write({ rejectsFormat, rejectsLine }: PlantRow, fault: ErrorBody): void {
    if (this.#file === undefined) {
      this.#file = new NewLinesFile(this.#paths(rejectsFormat), '--rejects');
      this.#file.write(rejectsFormat.header);
    }
    this.#file.write(rejectsLine(fault));
  }

  [Symbol.dispose](): void {
    this.#file?.[Symbol.dispose]();
  }

  /** No file is ever overwritten, because a user may be correcting its rows. */
  #paths({ extension }: RejectsFormat): Iterable<string> {
    if (this.#wanted !== undefined) return [this.#wanted];
    return numberedPaths(defaultRejectsPath(this.#input, extension));
  }
}

/**
 * Checks early whether the rejects file of an input file can be created.
 *
 * @param wanted the path that the user gave
 * @throws {Failure} if it exists and must be new, or its folder cannot be written
 */
export async function checkRejectsPath(input: string, wanted: string | undefined): Promise<void> {
  const file = wanted ?? defaultRejectsPath(input, 'csv');
  if (wanted !== undefined) rejectExisting(file, 'name another file with --rejects');
  try {
    await access(path.dirname(file), constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Failure(
      `rejected rows cannot be written to ${file} (${code}); name another file with --rejects`,
    );
  }
}

/**
 * The base name of the input with `.rejects`, in the current folder. Rejects of `x.rejects.csv` go
 * to `x.rejects-2.csv`, not to `x.rejects.rejects.csv`.
 */
function defaultRejectsPath(input: string, extension: RejectsFormat['extension']): string {
  const base = path
    .basename(input === STANDARD_INPUT ? '' : input)
    .replace(/\.gz$/i, '')
    .replace(/\.(csv|json|jsonl|ndjson|txt)$/i, '')
    .replace(/\.rejects(-[0-9]+)?$/, '');
  return `${base === '' ? 'plants' : base}.rejects.${extension}`;
}
