import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { CHECKPOINT_PASSES_MAX, CHECKPOINT_REMAINING_PAGES_MAX } from './limits.ts';

export type CheckpointRequest = 'checkpoint' | 'close';

/** How far a checkpoint came, in pages of the write-ahead log. */
export interface CheckpointReply {
  walPages: number;
  /** Of these, those that are in the database file as well. */
  copiedPages: number;
  /** What went wrong instead. */
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
    // What a connection has in memory after a failure is not to be trusted.
    database?.close();
    database = undefined;
    return { walPages: 0, copiedPages: 0, failure: (error as Error).message };
  }
}

function open(): DatabaseSync {
  const url = pathToFileURL(path);
  // A store that was taken away must not be made anew, https://sqlite.org/uri.html
  url.searchParams.set('mode', 'rw');
  const opened = new DatabaseSync(url);
  opened.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA wal_autocheckpoint = 0');
  return opened;
}

/** PASSIVE waits for nobody and lets nobody wait: https://sqlite.org/pragma.html#pragma_wal_checkpoint */
function checkpoint(open: DatabaseSync): CheckpointReply {
  let reached: CheckpointReply = { walPages: 0, copiedPages: 0 };
  for (let pass = 0; pass < CHECKPOINT_PASSES_MAX; pass++) {
    const row = open.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as { log: number; checkpointed: number };
    // A reader of an older state, such as an export, is in the way of what came after it.
    const isHeldUp = pass > 0 && row.checkpointed === reached.copiedPages;
    reached = { walPages: row.log, copiedPages: row.checkpointed };
    if (isHeldUp || row.log - row.checkpointed <= CHECKPOINT_REMAINING_PAGES_MAX) break;
  }
  return reached;
}
