import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type FileSystem = 'ext4' | 'xfs';

/** The least that mkfs.xfs takes, and some more. */
const SIZE_BYTES = 320 * 1024 * 1024;
/** A disk of its own: a file system in a file, mounted through a loop device, that can lose its power. */
export class LoopDisk implements Disposable {
  /** Where its files are found. */
  readonly folder: string;
  readonly #home = mkdtempSync(join(tmpdir(), 'plant-store-disk-'));
  readonly #image = join(this.#home, 'disk.img');
  readonly #fileSystem: FileSystem;
  readonly #ballast: string;

  constructor(fileSystem: FileSystem) {
    this.#fileSystem = fileSystem;
    this.folder = join(this.#home, 'mounted');
    this.#ballast = join(this.folder, 'ballast');
    mkdirSync(this.folder);
    writeFileSync(this.#image, '');
    truncateSync(this.#image, SIZE_BYTES);
    // All of it for everyone, root or not; and no inodes left that the kernel would make meanwhile.
    const options = fileSystem === 'ext4' ? ['-m', '0', '-E', 'lazy_itable_init=0,lazy_journal_init=0'] : [];
    execFileSync(`mkfs.${fileSystem}`, ['-q', ...options, this.#image], { stdio: 'pipe' });
    this.#mount();
  }

  /**
   * From now on nothing reaches the disk, what was written and not flushed is gone, and every call on a file fails: the
   * file system's own shutdown, which both know as the ioctl GOINGDOWN, here without a last flush of the journal.
   */
  cutPower(): void {
    execFileSync('xfs_io', ['-x', '-c', 'shutdown', this.folder]);
  }

  /** Mounts it anew, which replays its journal. No process may have a file open on it. */
  powerOn(): void {
    execFileSync('umount', [this.folder]);
    this.#mount();
  }

  /** From now on it can only be read, as an ext4 disk that has found itself broken; until it is mounted anew. */
  makeReadOnly(): void {
    execFileSync('mount', ['-o', 'remount,abort', this.folder]);
  }

  /** Every call that writes waits from now on, or goes on again. */
  setFrozen(frozen: boolean): void {
    execFileSync('fsfreeze', [frozen ? '--freeze' : '--unfreeze', this.folder]);
  }

  /** Takes all the room there is, to the last block. */
  fill(): void {
    const { bavail, bsize } = statfsSync(this.folder);
    execFileSync('fallocate', ['--length', String(Math.floor(bavail * bsize * 0.98)), this.#ballast]);
    try {
      for (;;) writeFileSync(this.#ballast, Buffer.alloc(bsize), { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }

  /** Gives the room back. */
  makeRoom(): void {
    rmSync(this.#ballast);
  }

  #mount(): void {
    execFileSync('mount', ['-t', this.#fileSystem, '-o', 'loop', this.#image, this.folder]);
  }

  [Symbol.dispose](): void {
    // It takes some time until the kernel has let go of the files of a process that was killed.
    execFileSync('umount', ['--lazy', this.folder]);
    rmSync(this.#home, { recursive: true });
  }
}
