import { constants, setPriority } from 'node:os';
import { checkCopy, copySnapshot, type StoreCounts } from '../../store/sqlite/sqlite-backup.ts';

/** A message to the process that started this one. The last message is `made` or `failure`. */
export interface BackupMessage {
  /** Progress of the copy, in pages. */
  copied?: { pages: number; totalPages: number };
  /** The copy is complete, and the check begins. */
  isChecking?: true;
  made?: { source: StoreCounts; copy: StoreCounts };
  failure?: { message: string; errcode: number | undefined };
}

/**
 * Copies and checks a store in a separate process. A call of SQLite cannot be interrupted, but a
 * process can be killed at any moment.
 */
export async function runBackupProcess(path: string, to: string): Promise<void> {
  // The service has priority over the backup.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  // Without the parent process the copy would never get its name.
  process.on('disconnect', () => process.exit());
  try {
    const source = await copySnapshot(path, to, ({ totalPages, remainingPages }) =>
      send({ copied: { pages: totalPages - remainingPages, totalPages } }),
    );
    send({ isChecking: true });
    send({ made: { source, copy: checkCopy(to) } });
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number };
    send({ failure: { message, errcode } });
  }
  if (process.connected) process.disconnect?.();
}

function send(message: BackupMessage): void {
  process.send?.(message, undefined, undefined, () => {
    // After an error the `disconnect` event follows.
  });
}
