import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { CHECKPOINT_PASSES_MAX, CHECKPOINT_REMAINING_PAGES_MAX } from './limits.ts';

export type CheckpointRequest = 'checkpoint' | 'close';

/** The progress of a checkpoint, in pages of the write-ahead log. */
export interface CheckpointReply {
  walPages: number;
  /** Pages that were copied into the database file. */
  copiedPages: number;
  /** The message of an error that ended the checkpoint. */
  failure?: string;
}

const path = workerData as string;
let database: DatabaseSync | undefined;

parentPort!.on('message', (request: CheckpointRequest) => {
  if (request === 'checkpoint') parentPort!.postMessage(reply());
  else {
    database?.close();
    parentPort!.close();
  }
});

function reply(): CheckpointReply {
  try {
    database ??= open();
    return checkpoint(database);
  } catch (error) {
    // After a failure the memory of a connection may differ from the file.
    database?.close();
    database = undefined;
    return { walPages: 0, copiedPages: 0, failure: (error as Error).message };
  }
}

function open(): DatabaseSync {
  const url = pathToFileURL(path);
  // Without `mode=rw` SQLite would create a deleted store again: https://sqlite.org/uri.html
  url.searchParams.set('mode', 'rw');
  const opened = new DatabaseSync(url);
  opened.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA wal_autocheckpoint = 0');
  return opened;
}

/** PASSIVE blocks no connection: https://sqlite.org/pragma.html#pragma_wal_checkpoint */
function checkpoint(open: DatabaseSync): CheckpointReply {
  let progress: CheckpointReply = { walPages: 0, copiedPages: 0 };
  for (let pass = 0; pass < CHECKPOINT_PASSES_MAX; pass++) {
    const row = open.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as { log: number; checkpointed: number };
    // A reader of an older snapshot, such as an export, blocks the copy of newer pages.
    const isBlocked = pass > 0 && row.checkpointed === progress.copiedPages;
    progress = { walPages: row.log, copiedPages: row.checkpointed };
    if (isBlocked || row.log - row.checkpointed <= CHECKPOINT_REMAINING_PAGES_MAX) break;
  }
  return progress;
}
