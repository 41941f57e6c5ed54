import { closeSync, openSync, writeFileSync } from 'node:fs';
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
   * @param option the option that names it, such as `--ids-file`
   * @throws {Failure} if it exists or cannot be created
   */
  constructor(path: string, option: string) {
    this.path = path;
    this.#option = option;
    try {
      this.#descriptor = openSync(path, 'wx');
    } catch (error) {
      throw this.#unwritable(error);
    }
  }

  /** @throws {Failure} if it cannot be written, such as on a full disk */
  write(text: string): void {
    try {
      writeFileSync(this.#descriptor, text);
    } catch (error) {
      throw this.#unwritable(error);
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }

  #unwritable(error: unknown): unknown {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) return error;
    const fault = code === 'EEXIST' ? 'already exists and was not changed' : `cannot be written (${code})`;
    return new Failure(`${this.path} ${fault}; name another file with ${this.#option}`);
  }
}
