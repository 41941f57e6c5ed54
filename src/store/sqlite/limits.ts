/** Limits of an SQLite store. A page has 4 KiB, the default of SQLite. */
import { relation } from '../../contract/limits.ts';

/** Size of a test commit: that of a full batch. A disk too full for it may have room for less. */
export const PROBE_BYTES = 8 * 1024 * 1024;
/** Timeout for the lock of another process. The command line locks the store only briefly. */
export const LOCK_TIMEOUT_MS = 2_000;
/** Until a hanging file system responds, the last known sizes are used after this time. */
export const MEASURE_TIMEOUT_MS = 500;
/**
 * Size of the page cache in KiB. SQLite allocates it page by page. A batch that does not fit is
 * written to the write-ahead log before its commit.
 *
 * With random ids a larger cache is slower. Nearly every batch splits a page, and SQLite
 * temporarily gives one half a page number beyond the end (balance_nonroot in btree.c). The commit
 * then searches the whole cache for such pages (pcache1Truncate in pcache1.c). The kernel caches
 * the rest of the file.
 */
export const PAGE_CACHE_KIB = 8 * 1024;
/** Delay from the first commit after a checkpoint to the next checkpoint. */
export const CHECKPOINT_INTERVAL_MS = 100;
/** While more pages remain, the checkpoint thread makes another pass. Each leaves fewer pages. */
export const CHECKPOINT_REMAINING_PAGES_MAX = 300;
export const CHECKPOINT_PASSES_MAX = 5;
/** The write-ahead log is restarted from this length on (16 MiB). */
export const WAL_RESTART_PAGES = 4_096;
/** Most pages that the writer copies to finish a checkpoint. It takes as long as a few commits. */
export const WRITER_CHECKPOINT_PAGES_MAX = 1_000;
/** SQLite itself makes a checkpoint from this length on (200 MiB), although it blocks a commit. */
export const AUTOCHECKPOINT_PAGES = 50_000;
/** A restart truncates the file of the write-ahead log to this size. Readers can make it longer. */
export const WAL_FILE_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of the write-ahead log that are rewritten at a time. */
export const WAL_CHUNK_BYTES = 1024 * 1024;
/** Pages that one step of a backup copies (4 MiB). Each step reports the progress. */
export const BACKUP_STEP_PAGES = 1_000;

relation(WRITER_CHECKPOINT_PAGES_MAX < WAL_RESTART_PAGES, 'the checkpoint thread copies most of a long log');
relation(
  CHECKPOINT_REMAINING_PAGES_MAX < WRITER_CHECKPOINT_PAGES_MAX,
  'the writer copies the pages that the passes leave',
);
relation(WAL_RESTART_PAGES < AUTOCHECKPOINT_PAGES, 'the log is restarted before SQLite blocks a commit');
