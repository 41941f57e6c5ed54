/**
 * The process in which a backup is made: `backup-process.ts STORE COPY`. What SQLite does there cannot be interrupted, a
 * process can be ended at any moment.
 */
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

// Plants come first where the processor is short.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

const [path = '', to = ''] = process.argv.slice(2);

// Nobody is left to give the copy its name.
process.on('disconnect', () => process.exit());

function tell(news: BackupNews): void {
  process.send?.(news, undefined, undefined, () => {
    // It cannot be told any more: the end of the connection comes next.
  });
}

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
