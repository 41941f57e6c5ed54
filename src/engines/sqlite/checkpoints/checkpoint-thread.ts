import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { flushAllWrites } from '../flush-settings.ts';
import { replyToCalls, threadData } from '../threads/reply-to-calls.ts';
import { CHECKPOINT_REMAINING_PAGES_MAX } from '../wal-limits.ts';

export type CheckpointCall = 'checkpoint' | 'close';

export interface CheckpointProgress {
  walPages: number;
  /** Pages that were copied into the database file. */
  copiedPages: number;
}

const PASSES_MAX = 5;

const path = threadData as string;
let database: DatabaseSync | undefined;

replyToCalls((call: CheckpointCall) => {
  if (call === 'close') return close();
  try {
    database ??= open();
    return checkpoint(database);
  } catch (error) {
    // After a failure the memory of a connection may differ from the file.
    close();
    throw error;
  }
});

function close(): void {
  database?.close();
  database = undefined;
}

function open(): DatabaseSync {
  const url = pathToFileURL(path);
  // Without `mode=rw` SQLite would create a deleted store again: https://sqlite.org/uri.html
  url.searchParams.set('mode', 'rw');
  using opening = new DisposableStack();
  const opened = opening.use(new DatabaseSync(url));
  flushAllWrites(opened, path);
  opened.exec('PRAGMA wal_autocheckpoint = 0');
  opening.move();
  return opened;
}

/** PASSIVE blocks no connection: https://sqlite.org/pragma.html#pragma_wal_checkpoint */
function checkpoint(open: DatabaseSync): CheckpointProgress {
  let copiedBefore: number | undefined;
  for (let pass = 1; ; pass++) {
    const row = open.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
    const { log: walPages, checkpointed: copiedPages } = row as { log: number; checkpointed: number };
    // A reader of an older snapshot, such as an export, blocks the copy of newer pages.
    const isBlocked = copiedPages === copiedBefore;
    const isNearEnd = walPages - copiedPages <= CHECKPOINT_REMAINING_PAGES_MAX;
    if (isBlocked || isNearEnd || pass === PASSES_MAX) return { walPages, copiedPages };
    copiedBefore = copiedPages;
  }
}
