import { closeSync, constants, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { flush } from '../flush.ts';

const CHUNK_BYTES = 1024 * 1024;

/** The permission model of Node forbids `fsync`, but allows O_SYNC, which flushes each write. */
const MAY_FLUSH = process.permission === undefined;

/**
 * Makes the write-ahead log durable that a connection found when it was opened.
 *
 * When SQLite makes a new index, it accepts every complete commit in the log without a flush
 * (https://sqlite.org/walformat.html#recovery). The last commit may come from a process that was
 * killed before its flush, or whose flush failed, and is then not on the disk. An `unchanged`
 * result would depend on it, and so would all later commits, because a recovery reads the log up to
 * its first gap.
 *
 * Each byte is written again and then flushed. A second flush alone is not enough, because after a
 * failed flush Linux marks the pages as written, and the next flush succeeds without them
 * (https://wiki.postgresql.org/wiki/Fsync_Errors).
 *
 * @param path path of the database file
 */
export function rewriteWal(database: DatabaseSync, path: string): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    rewrite(`${path}-wal`);
    // This flush makes the name of a new log durable in its folder. The permission model forbids
    // it, but ext4, xfs and btrfs flush the name of a new file together with the file.
    if (MAY_FLUSH) flush(dirname(path));
  } finally {
    database.exec('ROLLBACK');
  }
}

function rewrite(path: string): void {
  const file = openSync(path, MAY_FLUSH ? constants.O_RDWR : constants.O_RDWR | constants.O_SYNC);
  try {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let position = 0; ; ) {
      const length = readSync(file, chunk, 0, CHUNK_BYTES, position);
      if (length === 0) break;
      // A write may be shorter than the read. The next iteration reads the rest again.
      position += writeSync(file, chunk, 0, length, position);
    }
    if (MAY_FLUSH) fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
