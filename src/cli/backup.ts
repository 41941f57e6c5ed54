import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Command } from 'commander';
import { databaseAddressOf } from '../store/database-url.ts';
import type { StoreCounts } from '../store/sqlite/sqlite-backup.ts';
import { makeBackupFile } from './backup/backup-file.ts';
import type { BackupNews } from './backup/backup-process.ts';
import { type DatabaseOptions, databaseOption, readDatabase } from './database-option.ts';
import { Failure } from './failure.ts';
import { stoppable } from './interruption.ts';
import { BACKUP_PROCESS, ownProgram } from './own-program.ts';
import { amount, CountedProgress, formatCount } from './progress-display.ts';

const HELP = `
A service may be running on the store. The backup holds every plant that was answered 200 before the command began; it
is read whole, checked and counted, and flushed to the disk, before the command says that it is done. A file that is
there already is never written over.

It is a store itself: to restore it, stop the service, move the store away with all files beside it (-wal, -shm), and
put it in its place.

Example:
  $ npx plant-store backup "backups/plants-$(date +%F).db"`;

/** https://sqlite.org/rescode.html#full */
const SQLITE_FULL = 13;

export function backupCommand(): Command {
  return new Command('backup')
    .description('copy a SQLite store to a file while a service runs on it, and check the copy')
    .argument('<file>', 'the file to make')
    .addOption(databaseOption('the store: sqlite:PATH'))
    .addHelpText('after', HELP)
    .action(backUp);
}

async function backUp(file: string, options: DatabaseOptions): Promise<void> {
  const database = databaseAddressOf(readDatabase(options));
  if (database.engine === 'postgres') {
    throw new Failure(
      '`backup` copies a SQLite store; back PostgreSQL up by its own means, such as pg_dump',
      2,
    );
  }
  const sinceMs = performance.now();
  const { written, bytes } = await stoppable(
    stop => makeBackupFile(file, partial => copyAndCheck(database.path, partial, stop)),
    'no backup was made',
  );
  const seconds = ((performance.now() - sinceMs) / 1000).toFixed(1);
  console.log(`${file}: ${shown(written)}, ${formatCount(bytes)} bytes, in ${seconds} s`);
}

/** @throws {Failure} when the copy is not what the store was */
async function copyAndCheck(path: string, to: string, stop: AbortSignal): Promise<StoreCounts> {
  const { file, args } = ownProgram();
  const child = spawn(file, [...args, BACKUP_PROCESS, path, to], {
    // A process group of its own: Ctrl-C is for this process to handle.
    detached: true,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  // When its last message is here too.
  const ended = once(child, 'close');
  stop.addEventListener('abort', () => child.kill('SIGKILL'));
  using progress = new CountedProgress('copying', 'pages', 0);
  let last: BackupNews = {};
  child.on('message', (news: BackupNews) => {
    last = news;
    if (news.copied !== undefined) ({ pages: progress.done, totalPages: progress.total } = news.copied);
    if (news.isChecking) Object.assign(progress, { title: 'checking the copy', done: 0 });
  });
  const [exitCode, signal] = await ended;
  stop.throwIfAborted();
  const { made, failure } = last;
  if (failure !== undefined) throw new Failure(failedBecause(failure));
  if (made === undefined) {
    throw new Failure(`the process that copied ended early (${signal ?? exitCode}); run the command again`);
  }
  if (shown(made.source) !== shown(made.copy)) {
    throw new Failure(
      `the store holds ${shown(made.source)} and the copy ${shown(made.copy)}, which must not happen; keep an older backup, and report this`,
    );
  }
  return made.copy;
}

function failedBecause({ message, errcode }: { message: string; errcode: number | undefined }): string {
  // What the store refuses says what to do by itself.
  if (errcode === undefined) return message;
  // The low byte is the kind of failure, https://sqlite.org/rescode.html
  if ((errcode & 0xff) === SQLITE_FULL) return 'the disk is full; make room, or name a file on another disk';
  return `copying failed (${message}, SQLite result code ${errcode}); look for faults of both disks, and run the command again`;
}

function shown({ plants, revisions, tokens }: StoreCounts): string {
  return `${amount(plants, 'plant')}, ${amount(revisions, 'revision')} and ${amount(tokens, 'token')}`;
}
