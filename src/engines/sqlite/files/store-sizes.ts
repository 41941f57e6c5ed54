import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SqliteStatistics } from '../../storage-engine.ts';

/** Timeout of a hanging file system. After it, the last known sizes are used. */
const READ_TIMEOUT_MS = 500;

type Sizes = Pick<SqliteStatistics, 'walBytes' | 'disk'>;

/** The sizes of a write-ahead log and of its disk. */
export class StoreSizes {
  readonly #path: string;
  #last: Sizes = { walBytes: 0, disk: undefined };
  #reading: Promise<void> | undefined;

  constructor(databasePath: string) {
    this.#path = databasePath;
  }

  /** Never throws. */
  async read(): Promise<Sizes> {
    // A file system that hangs blocks a thread of Node's small pool, so only one call is in flight.
    this.#reading ??= this.#readFiles().finally(() => (this.#reading = undefined));
    await Promise.race([this.#reading, sleep(READ_TIMEOUT_MS, undefined, { ref: false })]);
    return this.#last;
  }

  async #readFiles(): Promise<void> {
    // A new or closed store has no log.
    const wal = await stat(`${this.#path}-wal`).catch(() => undefined);
    const disk = await statfs(dirname(this.#path)).catch(() => undefined);
    this.#last = {
      walBytes: wal?.size ?? 0,
      disk: disk && {
        bytes: disk.blocks * disk.bsize,
        freeBytes: disk.bavail * disk.bsize,
      },
    };
  }
}
