/** Lengths of the write-ahead log, on which three threads agree. A page has 4 KiB. */

/** While more pages remain, the checkpoint thread makes another pass. Each leaves fewer pages. */
export const CHECKPOINT_REMAINING_PAGES_MAX = 300;
/** The write-ahead log is restarted from this length on (16 MiB). */
export const WAL_RESTART_PAGES = 4_096;
/** Most pages that the writer copies to finish a checkpoint. It takes as long as a few commits. */
export const WRITER_CHECKPOINT_PAGES_MAX = 1_000;
/** SQLite itself makes a checkpoint from this length on (200 MiB), although it blocks a commit. */
export const AUTOCHECKPOINT_PAGES = 50_000;
/** A restart truncates the file of the write-ahead log to this size. Readers can make it longer. */
export const WAL_FILE_MAX_BYTES = 64 * 1024 * 1024;
