import { closeSync, constants, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { flush } from './database.ts';
import { WAL_CHUNK_BYTES } from './limits.ts';

/** Node's permission model forbids `fsync`, but allows a write that is flushed with it. */
const MAY_FLUSH = process.permission === undefined;

/**
 * Makes durable what a connection found in the write-ahead log when it was opened.
 *
 * SQLite takes every whole commit that it can read in the log for committed (https://sqlite.org/walformat.html#recovery),
 * and does not flush it. The last one may be from a process that was killed before its flush, or whose flush failed: the
 * kernel still has it in memory, and the disk does not. An `unchanged` would rest on it, and so would every commit after
 * it, since the log counts only up to its first gap. Flushing the log again is not enough: after a failed flush, Linux
 * takes the pages for written, and the next flush succeeds without them
 * (https://wiki.postgresql.org/wiki/Fsync_Errors). So each byte is written again, and then flushed.
 *
 * @param database keeps other writers away meanwhile
 * @param path of the database file
 * @throws what SQLite or the file system throws; the log says the same as before
 */
export function rewriteWal(database: DatabaseSync, path: string): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    rewrite(`${path}-wal`);
    // The log may be new, and its name in the folder not durable yet. Where a folder must not be flushed, the file systems
    // in use (ext4, xfs, btrfs) bring the name of a new file to the disk with the file.
    if (MAY_FLUSH) flush(dirname(path));
  } finally {
    database.exec('ROLLBACK');
  }
}

function rewrite(path: string): void {
  const file = openSync(path, MAY_FLUSH ? constants.O_RDWR : constants.O_RDWR | constants.O_SYNC);
  try {
    const chunk = Buffer.allocUnsafe(WAL_CHUNK_BYTES);
    for (let position = 0; ; ) {
      const length = readSync(file, chunk, 0, WAL_CHUNK_BYTES, position);
      if (length === 0) break;
      // Fewer bytes may be written than were read; the next round reads the rest again.
      position += writeSync(file, chunk, 0, length, position);
    }
    if (MAY_FLUSH) fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
