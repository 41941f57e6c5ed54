import { constants, setPriority } from 'node:os';
import { StoreDamaged } from '../../core/commit/store-errors.ts';
import {
  CopyDamaged,
  checkCopy,
  copySnapshot,
  type StoreCounts,
} from '../../engines/sqlite/access/sqlite-backup.ts';
import { openSqliteReader } from '../../engines/sqlite/access/sqlite-reader.ts';
import { SealDigest, sealText } from '../../proof/seal.ts';
import { verifyRevisions } from '../../proof/verification.ts';

/** A message to the process that started this one. */
export type BackupMessage = { kind: 'progress'; progress: BackupProgress } | BackupEnd;

/** The last message. */
export type BackupEnd = { kind: 'made'; backup: MadeBackup } | { kind: 'failed'; failure: BackupFailure };

/** How much of the current step is done. */
interface BackupProgress {
  title: string;
  unit: string;
  done: number;
  total: number;
}

export interface MadeBackup {
  source: StoreCounts;
  copy: StoreCounts;
  /** The text of the seal; undefined if a revision is damaged. */
  seal: string | undefined;
  faults: string[];
  /** Number of revisions whose time is ahead of the clock. */
  aheadOfClock: number;
}

export interface BackupFailure {
  message: string;
  /** The result code of SQLite, if SQLite failed. */
  errcode: number | undefined;
  /** The file that is damaged, if one is. */
  damaged: 'store' | 'copy' | undefined;
}

/**
 * Copies a store and verifies the copy. It is a process of its own, since SQLite calls cannot be
 * aborted.
 *
 * @param path the SQLite file of the store
 * @param to an empty file, which becomes the copy
 */
export async function runBackupProcess(path: string, to: string): Promise<void> {
  // The service has priority over the backup.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  // Only the parent process gives the copy its name.
  process.on('disconnect', () => process.exit());
  try {
    const begunAt = Date.now();
    const source = await copySnapshot(path, to, ({ totalPages, remainingPages }) =>
      sendProgress('copying', 'pages', totalPages - remainingPages, totalPages),
    );
    const checked = (revisions: number) =>
      sendProgress('checking the copy', 'revisions', revisions, source.revisions);
    checked(0);
    const copy = await checkCopy(to);
    // Equal counts and valid checksums show that the copy is complete, without a second read of the
    // store.
    await using reader = openSqliteReader(to);
    // The store can still get revisions from the newest time on that is not ahead of the clock. So
    // the seal lists the revisions of the copy from that time on.
    const until = (await reader.newestTime(begunAt)) - 1;
    const digest = SealDigest.ofAllListingAfter(until);
    let done = 0;
    const { seal, faults, aheadOfClock } = await verifyRevisions(reader, digest, undefined, revisions => {
      done += revisions;
      checked(done);
    });
    const backup = { source, copy, seal: seal && sealText(seal), faults, aheadOfClock };
    await send({ kind: 'made', backup });
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number };
    const damaged =
      error instanceof StoreDamaged ? 'store' : error instanceof CopyDamaged ? 'copy' : undefined;
    await send({ kind: 'failed', failure: { message, errcode, damaged } });
  }
  if (process.connected) process.disconnect?.();
}

function sendProgress(title: string, unit: string, done: number, total: number): void {
  void send({ kind: 'progress', progress: { title, unit, done, total } });
}

/**
 * Resolves when the message is sent or has failed. After a failure, the `disconnect` event follows.
 */
async function send(message: BackupMessage): Promise<void> {
  // The caller disconnects next, which would drop a message that is not sent yet.
  await new Promise(resolve => process.send?.(message, undefined, undefined, resolve));
}
