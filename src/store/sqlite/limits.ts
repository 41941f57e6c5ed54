/** Limits of a SQLite store. Its pages have 4 KiB, the default of SQLite. */
import { relation } from '../../contract/limits.ts';

/** A statement waits this long for the lock of another process; the command line holds one for an instant. */
export const LOCK_TIMEOUT_MS = 2_000;
/**
 * Pages of the database that are cached, in KiB. Memory is taken as pages are touched, not at once. A larger batch
 * spills into the write-ahead log before its commit.
 *
 * A larger cache costs more than it saves where ids are random. Nearly every batch splits a page then, and SQLite gives
 * one half a page number beyond the end for a moment (balance_nonroot in its btree.c). The commit then searches the whole
 * cache for pages beyond the end (pcache1Truncate in its pcache1.c). The kernel caches the rest of the file anyway.
 */
export const PAGE_CACHE_KIB = 8 * 1024;
/** From the first commit after a checkpoint to the next checkpoint. */
export const CHECKPOINT_INTERVAL_MS = 100;
/** While more pages than this remain, the checkpoint thread makes another pass: it finds fewer each time. */
export const CHECKPOINT_REMAINING_PAGES_MAX = 300;
export const CHECKPOINT_PASSES_MAX = 5;
/** From this length (16 MiB) the write-ahead log is restarted. */
export const WAL_RESTART_PAGES = 4_096;
/** The writer stops for about this many pages, as long as a few commits take, to finish a checkpoint. */
export const WRITER_CHECKPOINT_PAGES_MAX = 1_000;
/** From this length (200 MiB) SQLite itself checkpoints, whatever that holds up. */
export const AUTOCHECKPOINT_PAGES = 50_000;
/** A write-ahead log that grew beyond this, because a reader was in the way, is cut to it when it is restarted. */
export const WAL_FILE_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of the write-ahead log that are read and written again at a time. */
export const WAL_CHUNK_BYTES = 1024 * 1024;
/** Pages that a backup copies at a time (4 MiB); between two steps it reports its progress. */
export const BACKUP_STEP_PAGES = 1_000;

relation(WRITER_CHECKPOINT_PAGES_MAX < WAL_RESTART_PAGES, 'the checkpoint thread copies most of a long log');
relation(
  CHECKPOINT_REMAINING_PAGES_MAX < WRITER_CHECKPOINT_PAGES_MAX,
  'the writer finishes what the passes leave',
);
relation(
  WAL_RESTART_PAGES < AUTOCHECKPOINT_PAGES,
  'the log is restarted before SQLite holds up a commit for it',
);
