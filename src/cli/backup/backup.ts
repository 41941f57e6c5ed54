import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command } from 'commander';
import { StoreDamaged } from '../../core/commit/store-errors.ts';
import type { DatabaseAddress } from '../../engines/openers/database-url.ts';
import type { StoreCounts } from '../../engines/sqlite/access/sqlite-backup.ts';
import { isFullDisk } from '../../engines/sqlite/sqlite-errors.ts';
import { amount } from '../../formats/number-text.ts';
import { noteRun, SEAL_SUFFIX } from '../note-run.ts';
import { reportFaults } from '../output/damage.ts';
import { type DatabaseOptions, databaseOption, readDatabase } from '../shared/database-option.ts';
import { Failure } from '../shared/failure.ts';
import { stoppable } from '../shared/interruption.ts';
import { makeNewFile, rejectExisting } from '../shared/new-file.ts';
import { CountedProgress } from '../shared/progress-display.ts';
import type { BackupEnd, BackupFailure, BackupMessage, MadeBackup } from './backup-process.ts';
import { BACKUP_PROCESS, ownProgram } from './own-program.ts';

const HELP = `
The backup contains every plant that got the status 200 before the command
started. The command verifies the complete copy and flushes it to disk. It writes
the seal of \`verify\` to FILE.seal. It never overwrites a file.

The backup file is a complete store. To restore it, stop the service. Move the
folder of the old store away, with all its files. Create the folder again. Then copy the
backup to the path of the old store file.

Example:
  $ npx plant-store backup "backups/plants-$(date +%F).db"`;

type Database = Extract<DatabaseAddress, { engine: 'sqlite' }>;

export function backupCommand(): Command {
  return new Command('backup')
    .description('copy an SQLite store to a file, and check the copy; a service may use the store meanwhile')
    .argument('<file>', 'the file to create')
    .addOption(databaseOption('the store: sqlite:PATH'))
    .addHelpText('after', HELP)
    .action(backUp);
}

async function backUp(file: string, options: DatabaseOptions): Promise<void> {
  const database = readDatabase(options);
  if (database.engine === 'postgres')
    throw new Failure(
      '`backup` copies only SQLite stores; back up PostgreSQL with its own tools, such as pg_dump',
      2,
    );
  const beside = ['-wal', '-shm', '-journal'].map(suffix => `${resolve(database.path)}${suffix}`);
  if (beside.includes(resolve(file)))
    throw new Failure(`SQLite uses ${file} for the store; choose another name`, 2);
  const sinceMs = performance.now();
  rejectExistingParts(file);
  const written = await stoppable(
    stop =>
      makeNewFile(file, async partial => {
        const made = await copyAndCheck(database, partial, stop);
        rejectExistingParts(file);
        return made;
      }),
    'no backup was created',
  );
  const seconds = ((performance.now() - sinceMs) / 1000).toFixed(1);
  const counts = shown(written.copy);
  console.log(`${file}: ${counts}, ${amount(statSync(file).size, 'byte')}, in ${seconds} s`);
  const { seal, faults, aheadOfClock } = written;
  reportFaults(faults, aheadOfClock);
  if (seal !== undefined) {
    await makeNewFile(`${file}${SEAL_SUFFIX}`, partial => writeFileSync(partial, seal));
    console.log(`${file}${SEAL_SUFFIX}: the seal of this backup, for \`verify --against\``);
  }
  const [fault] = faults;
  await noteRun(database, {
    command: 'backup',
    result: `${file}: ${counts}`,
    finding: fault === undefined ? { kind: 'sound' } : { kind: 'damaged', fault },
  });
  if (faults.length > 0)
    throw new Failure(
      'the backup contains everything that the store has, with the faults above, and gets no seal; keep your older backups',
    );
}

/** SQLite would apply an old write-ahead log or journal to the backup. @throws {Failure} */
function rejectExistingParts(file: string): void {
  for (const suffix of ['', SEAL_SUFFIX]) rejectExisting(`${file}${suffix}`);
  for (const suffix of ['-wal', '-journal', '-shm'])
    rejectExisting(`${file}${suffix}`, 'name another file, or move this file away; it may contain plants');
}

/** @throws {Failure} if the copy fails or does not have the counts of the store */
async function copyAndCheck(database: Database, to: string, stop: AbortSignal): Promise<MadeBackup> {
  const { file, args } = ownProgram();
  const child = spawn(file, [...args, BACKUP_PROCESS, database.path, to], {
    // Ctrl-C must reach only this process, which then ends the other one.
    detached: true,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  // The event `exit` may come before the last message.
  const ended = once(child, 'close');
  stop.addEventListener('abort', () => child.kill('SIGKILL'));
  using progress = new CountedProgress('copying', 'pages', undefined);
  let end: BackupEnd | undefined;
  child.on('message', (message: BackupMessage) => {
    if (message.kind === 'progress') Object.assign(progress, message.progress);
    else end = message;
  });
  const [exitCode, signal] = await ended;
  stop.throwIfAborted();
  if (end === undefined)
    throw new Failure(`the copying process ended early (${signal ?? exitCode}); run the command again`);
  if (end.kind === 'failed') {
    const { message, damaged } = end.failure;
    // Without a result, the note of the last successful backup stays.
    if (damaged !== undefined) {
      const finding = { kind: 'damaged' as const, fault: message };
      await noteRun(database, { command: 'backup', finding });
    }
    throw damaged === 'store' ? new StoreDamaged(message) : new Failure(failedBecause(end.failure));
  }
  const { source, copy } = end.backup;
  if (shown(source) !== shown(copy))
    throw new Failure(
      `the store has ${shown(source)} but the copy has ${shown(copy)}, which is a bug; use an older backup, and report this`,
    );
  return end.backup;
}

function failedBecause(failure: BackupFailure): string {
  const { message, errcode } = failure;
  // The message of the store already says what to do.
  if (errcode === undefined) return message;
  if (isFullDisk(failure)) return 'the disk is full; free space, or name a file on another disk';
  return `copying failed (${message}, SQLite result code ${errcode}); check both disks for errors, then run the command again`;
}

function shown({ plants, revisions, tokens }: StoreCounts): string {
  return `${amount(plants, 'plant')}, ${amount(revisions, 'revision')} and ${amount(tokens, 'token')}`;
}
