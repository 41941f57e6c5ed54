import { closeSync, copyFileSync, existsSync, fsyncSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { prefillStore } from '../prefill.ts';

/** Stores that hold a number of plants under random ids, each made once and shared by the curves. */
export class PrefilledStores {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** @returns the path of a store that is only to be read; made when it is first asked for */
  original(plants: number): string {
    const path = join(this.#folder, `plants-${plants}.db`);
    if (!existsSync(path)) prefillStore(path, plants);
    return path;
  }

  /** Copies a store to a path, and flushes it, so that no measurement pays for the copying. */
  copy(plants: number, path: string): void {
    copyFileSync(this.original(plants), path);
    const copy = openSync(path, 'r');
    fsyncSync(copy);
    closeSync(copy);
  }
}
