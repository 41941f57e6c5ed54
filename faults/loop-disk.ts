import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type FileSystem = 'ext4' | 'xfs';

/** A little more than the minimum of mkfs.xfs. */
const SIZE_BYTES = 320 * 1024 * 1024;

/** A file system in a file, mounted through a loop device. It can simulate a power cut. */
export class LoopDisk implements Disposable {
  /** The mount point. */
  readonly folder: string;
  readonly #home = mkdtempSync(join(tmpdir(), 'plant-store-disk-'));
  readonly #image = join(this.#home, 'disk.img');
  readonly #fileSystem: FileSystem;

  constructor(fileSystem: FileSystem) {
    this.#fileSystem = fileSystem;
    this.folder = join(this.#home, 'mounted');
    mkdirSync(this.folder);
    writeFileSync(this.#image, '');
    truncateSync(this.#image, SIZE_BYTES);
    // No blocks are reserved for root, and the kernel creates no inodes in the background.
    const options = fileSystem === 'ext4' ? ['-m', '0', '-E', 'lazy_itable_init=0,lazy_journal_init=0'] : [];
    execFileSync(`mkfs.${fileSystem}`, ['-q', ...options, this.#image], { stdio: 'pipe' });
    this.#mount();
  }

  /**
   * Simulates a power cut: unflushed data is lost, and every call on a file fails. It uses the
   * shutdown of the file system (the ioctl GOINGDOWN), without a last flush of the journal.
   */
  cutPower(): void {
    execFileSync('xfs_io', ['-x', '-c', 'shutdown', this.folder]);
  }

  /** Mounts the disk again, which replays its journal. No process may have an open file on it. */
  powerOn(): void {
    execFileSync('umount', [this.folder]);
    this.#mount();
  }

  #mount(): void {
    execFileSync('mount', ['-t', this.#fileSystem, '-o', 'loop', this.#image, this.folder]);
  }

  [Symbol.dispose](): void {
    // The kernel closes the files of a killed process a little later.
    execFileSync('umount', ['--lazy', this.folder]);
    rmSync(this.#home, { recursive: true });
  }
}
