import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('./failing-calls.c', import.meta.url));
const CALLS = { none: 0, write: 1, flush: 2 } as const;
const SHAPES = { fail: 0, torn: 1, short: 2, stall: 3 } as const;
/** Positions of the fields of an order. Each field is an int32. */
const HIT = 6;
const CLOCK_SECONDS = 7;
const FIELDS = 8;

/** The calls on the files of the store that fail, and how. */
export interface FailingCall {
  call: 'write' | 'flush';
  /** The first call that fails, counted from 1 since the order. */
  nth: number;
  /**
   * - `fail`: the call has no effect and fails;
   * - `torn`: it writes half of the data and fails;
   * - `short`: it writes half of the data and returns that length;
   * - `stall`: it waits until the order ends, and then succeeds.
   */
  shape: keyof typeof SHAPES;
  error: 'EIO' | 'ENOSPC';
  /** Whether all later calls fail too, until the order ends. */
  permanent: boolean;
}

/** Compiles the library `failing-calls.c`, and controls it through a file. */
export class FailingCalls implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'plant-store-failing-calls-'));
  readonly #library = join(this.#folder, 'failing-calls.so');
  readonly #orderPath = join(this.#folder, 'order');
  readonly #order: number;

  constructor() {
    execFileSync('gcc', ['-O2', '-Wall', '-Werror', '-shared', '-fPIC', '-o', this.#library, SOURCE, '-ldl']);
    this.#order = openSync(this.#orderPath, 'w+');
    this.#write(0, new Array(FIELDS).fill(0));
  }

  /** @returns environment variables for a process whose calls on files of this folder shall fail */
  environment(folder: string): Record<string, string> {
    return {
      LD_PRELOAD: this.#library,
      FAILING_CALLS_FOLDER: folder,
      FAILING_CALLS_ORDER: this.#orderPath,
    };
  }

  /** Makes calls fail from now on. */
  begin({ call, nth, shape, error, permanent }: FailingCall): void {
    this.end();
    this.#write(1, [nth, constants.errno[error], SHAPES[shape], Number(permanent), 0, 0]);
    this.#write(0, [CALLS[call]]);
  }

  /** Makes all calls work again. */
  end(): void {
    this.#write(0, [CALLS.none]);
  }

  /** Sets the clock of the process forward or back. */
  setClock(seconds: number): void {
    this.#write(CLOCK_SECONDS, [seconds]);
  }

  /** The number of calls that failed since the order. */
  get failed(): number {
    const fields = new Int32Array(FIELDS);
    readSync(this.#order, fields, { position: 0 });
    return fields[HIT]!;
  }

  #write(place: number, values: number[]): void {
    writeSync(this.#order, Int32Array.from(values), 0, values.length * 4, place * 4);
  }

  [Symbol.dispose](): void {
    closeSync(this.#order);
    rmSync(this.#folder, { recursive: true });
  }
}
