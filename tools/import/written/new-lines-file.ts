import { closeSync, openSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Failure } from '../../../src/cli/shared/failure.ts';

/**
 * A file that must be new. The operating system has a text when `write` returns, so a process that
 * is killed loses none.
 */
export class NewLinesFile implements Disposable {
  readonly path: string;
  readonly #option: string;
  readonly #descriptor: number;

  /**
   * Creates the file.
   *
   * @param paths names that are tried until one is not in use
   * @param option the option that names it, such as `--ids-file`
   * @throws {Failure} if all exist, or it cannot be created
   */
  constructor(paths: Iterable<string>, option: string) {
    this.#option = option;
    const { path, descriptor } = this.#create(paths);
    this.path = path;
    this.#descriptor = descriptor;
  }

  /** @throws {Failure} if it cannot be written, such as on a full disk */
  write(text: string): void {
    try {
      writeFileSync(this.#descriptor, text);
    } catch (error) {
      throw this.#unwritable(this.path, error);
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }

  #create(paths: Iterable<string>): { path: string; descriptor: number } {
    let failure: unknown;
    for (const path of paths)
      try {
        return { path, descriptor: openSync(path, 'wx') };
      } catch (error) {
        failure = this.#unwritable(path, error);
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') break;
      }
    throw failure;
  }

  #unwritable(file: string, error: unknown): unknown {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) return error;
    const fault = code === 'EEXIST' ? 'already exists and was not changed' : `cannot be written (${code})`;
    return new Failure(`${file} ${fault}; name another file with ${this.#option}`);
  }
}

/** Yields names for a file that must be new: `x.csv`, then `x-2.csv`, `x-3.csv`, without an end. */
export function* numberedPaths(wanted: string): Generator<string, never, undefined> {
  const { dir, name, ext } = path.parse(wanted);
  yield wanted;
  for (let number = 2; ; number++) yield path.join(dir, `${name}-${number}${ext}`);
}
