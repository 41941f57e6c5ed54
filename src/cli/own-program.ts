import { realpathSync } from 'node:fs';
import { isSea } from 'node:sea';

/** The argument by which `backup` starts this program as the process that copies; not for people. */
export const BACKUP_PROCESS = 'backup-process';

/**
 * What starts this program once more, in front of its own arguments: Node with the script, or the executable that is both
 * (https://nodejs.org/api/single-executable-applications.html).
 */
export function ownProgram(): { file: string; args: string[] } {
  const file = process.execPath;
  return isSea() ? { file, args: [] } : { file, args: [...process.execArgv, realpathSync(process.argv[1]!)] };
}
