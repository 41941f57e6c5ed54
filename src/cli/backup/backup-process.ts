import { constants, setPriority } from 'node:os';
import { checkCopy, copySnapshot, type StoreCounts } from '../../store/sqlite/sqlite-backup.ts';

/** What it tells the process that started it; the last one is `made` or `failure`. */
export interface BackupNews {
  /** How far the copying is, in pages. */
  copied?: { pages: number; totalPages: number };
  /** All is copied and is checked from now on. */
  isChecking?: true;
  made?: { source: StoreCounts; copy: StoreCounts };
  failure?: { message: string; errcode: number | undefined };
}

/**
 * The work of the process in which a backup is made. What SQLite does there cannot be interrupted, a process can be ended
 * at any moment.
 */
export async function runBackupProcess(path: string, to: string): Promise<void> {
  // Plants come first where the processor is short.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  // Nobody is left to give the copy its name.
  process.on('disconnect', () => process.exit());
  try {
    const source = await copySnapshot(path, to, ({ totalPages, remainingPages }) =>
      tell({ copied: { pages: totalPages - remainingPages, totalPages } }),
    );
    tell({ isChecking: true });
    tell({ made: { source, copy: checkCopy(to) } });
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number };
    tell({ failure: { message, errcode } });
  }
  if (process.connected) process.disconnect?.();
}

function tell(news: BackupNews): void {
  process.send?.(news, undefined, undefined, () => {
    // It cannot be told any more: the end of the connection comes next.
  });
}
