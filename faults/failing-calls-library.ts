import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('./failing-calls.c', import.meta.url));
const CALLS = { none: 0, write: 1, flush: 2 } as const;
const SHAPES = { fail: 0, torn: 1, short: 2, stall: 3 } as const;
/** Places of the fields of the order, each an int32. */
const HIT = 6;
const CLOCK_SECONDS = 7;
const FIELDS = 8;

/** Which calls on the files of the store fail, and how. */
export interface FailingCall {
  call: 'write' | 'flush';
  /** The first one that does, counted from 1 from the moment of the order. */
  nth: number;
  /**
   * `fail`: nothing is done; `torn`: half of it is written, and then it fails; `short`: half of it is written, and the
   * call says so; `stall`: it is done when the order ends.
   */
  shape: keyof typeof SHAPES;
  error: 'EIO' | 'ENOSPC';
  /** Whether all that follow fail as well, until the order ends. */
  forGood: boolean;
}

/** The library `failing-calls.c`, compiled, and the file through which a process that has loaded it is told what fails. */
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

  /** @returns what a process is started with so that its calls on files of this folder can fail */
  environment(folder: string): Record<string, string> {
    return {
      LD_PRELOAD: this.#library,
      FAILING_CALLS_FOLDER: folder,
      FAILING_CALLS_ORDER: this.#orderPath,
    };
  }

  /** Lets calls fail from now on. */
  begin({ call, nth, shape, error, forGood }: FailingCall): void {
    this.end();
    this.#write(1, [nth, constants.errno[error], SHAPES[shape], Number(forGood), 0, 0]);
    this.#write(0, [CALLS[call]]);
  }

  /** Lets all calls work again. */
  end(): void {
    this.#write(0, [CALLS.none]);
  }

  /** Sets the clock of the process forward, or back. */
  setClock(seconds: number): void {
    this.#write(CLOCK_SECONDS, [seconds]);
  }

  /** How many calls failed since the order was given. */
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
