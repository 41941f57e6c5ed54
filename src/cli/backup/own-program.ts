import { realpathSync } from 'node:fs';
import { isSea } from 'node:sea';

/** Internal argument: `backup` starts this program with it as the process that copies. */
export const BACKUP_PROCESS = 'backup-process';

/** How to start this program again: the executable, or Node with the script. */
export function ownProgram(): { file: string; args: string[] } {
  const file = process.execPath;
  return isSea() ? { file, args: [] } : { file, args: [...process.execArgv, realpathSync(process.argv[1]!)] };
}
