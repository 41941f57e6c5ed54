import { constants, setPriority } from 'node:os';
import { StoreDamaged } from '../../core/commit/store-errors.ts';
import {
  CopyDamaged,
  checkCopy,
  copySnapshot,
  type StoreCounts,
} from '../../engines/sqlite/commands/sqlite-backup.ts';
import { openSqliteReader } from '../../engines/sqlite/commands/sqlite-reader.ts';
import { SealDigest, sealText } from '../../operate/proof/seal.ts';
import { type Verification, verifyRevisions } from '../../operate/proof/verification.ts';

/** A message to the process that started this one. The last message is `made` or `failure`. */
export interface BackupMessage {
  progress?: { title: string; unit: string; done: number; total: number };
  /** The seal of the copy, unless a revision is damaged; and its faults. */
  made?: Omit<Verification, 'seal'> & Record<'source' | 'copy', StoreCounts> & { seal: string | undefined };
  failure?: { message: string; errcode: number | undefined; damaged: 'store' | 'copy' | undefined };
}

/**
 * Copies a store and verifies the copy. It is a process of its own, since SQLite calls cannot be
 * aborted.
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
    const { seal, ...verification } = await verifyRevisions(reader, digest, undefined, revisions => {
      done += revisions;
      checked(done);
    });
    await send({ made: { source, copy, seal: seal && sealText(seal), ...verification } });
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number };
    const damaged =
      error instanceof StoreDamaged ? 'store' : error instanceof CopyDamaged ? 'copy' : undefined;
    await send({ failure: { message, errcode, damaged } });
  }
  if (process.connected) process.disconnect?.();
}

function sendProgress(title: string, unit: string, done: number, total: number): void {
  void send({ progress: { title, unit, done, total } });
}

/**
 * Resolves when the message is sent or has failed. After a failure, the `disconnect` event follows.
 */
async function send(message: BackupMessage): Promise<void> {
  // The caller disconnects next, which would drop a message that is not sent yet.
  await new Promise(resolve => process.send?.(message, undefined, undefined, resolve));
}
