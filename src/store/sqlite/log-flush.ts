import { closeSync, constants, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { flush } from './database.ts';

const PIECE_BYTES = 1024 * 1024;
/** Node gives no flush away under its permission model, while a write that is flushed with it is allowed. */
const MAY_FLUSH = process.permission === undefined;

/**
 * Makes durable what a connection found in the write-ahead log when it was opened.
 *
 * SQLite takes for committed whatever whole commit it can read in the log (https://sqlite.org/walformat.html#recovery), and
 * does not flush it. The last one may be that of a process that was killed between the write and the flush, or whose flush
 * failed: then it can be read, for the kernel still has it in memory, and is not on the disk. A plant that is answered as
 * unchanged would rest on it, and so would every commit behind it, since the log counts only up to its first gap. To flush
 * the log again is not enough: after a flush that failed, Linux takes the pages for written, and the next one succeeds
 * without them (https://wiki.postgresql.org/wiki/Fsync_Errors). So each byte is written again, and then flushed.
 *
 * @param database keeps other writers away meanwhile
 * @param path of the database file
 * @throws what SQLite or the file system throws; the log says the same as before
 */
export function flushLogAnew(database: DatabaseSync, path: string): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    rewrite(`${path}-wal`);
    flushName(path);
  } finally {
    database.exec('ROLLBACK');
  }
}

function rewrite(path: string): void {
  const file = openSync(path, MAY_FLUSH ? constants.O_RDWR : constants.O_RDWR | constants.O_SYNC);
  try {
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    for (let position = 0, length = 0; ; position += length) {
      length = readSync(file, piece, 0, PIECE_BYTES, position);
      if (length === 0) break;
      for (let done = 0; done < length; ) {
        done += writeSync(file, piece, done, length - done, position + done);
      }
    }
    if (MAY_FLUSH) fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * The log may be new, and its name in the folder no more durable than what is in it. Where a folder must not be flushed,
 * the file systems in use (ext4, xfs, btrfs) bring the name of a new file to the disk with the file.
 */
function flushName(path: string): void {
  if (MAY_FLUSH) flush(dirname(path));
}
