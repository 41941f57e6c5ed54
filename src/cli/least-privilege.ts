import { existsSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { Option } from 'commander';
import { databaseAddressOf } from '../store/database-url.ts';
import { type PostgresAddress, SYSTEM_ROOTS } from '../store/postgres/postgres-url.ts';
import { explainFailure, makeFolder } from '../store/sqlite/database.ts';
import { Failure } from './failure.ts';
import { ownProgram, ownScript } from './own-program.ts';

/** Whether `serve` gives up what it does not need. */
export function leastPrivilegeOption(): Option {
  return new Option(
    '--least-privilege',
    'read nothing but the program and the store, write nothing but the store, start no program',
  );
}

/** What a process may touch: files, and all that is in folders. */
interface FileAccess {
  read: string[];
  write: string[];
}

/**
 * Goes on as the same process, with the same arguments, under Node's permission model
 * (https://nodejs.org/api/permissions.html). It is handed down to threads, which may also read the folder that the process
 * was started in. It holds for what JavaScript does by Node's own functions: SQLite opens its files itself, and which
 * addresses are reached is not limited.
 *
 * Does nothing in a process that has such permissions already. Otherwise it returns only by throwing.
 *
 * @param database the address of the store; the folder of an SQLite file is made
 * @param passwordFile that of the database
 * @throws {Failure} where a process cannot be replaced
 */
export function restrictProcess(database: string, passwordFile: string | undefined): void {
  if (process.permission !== undefined) return;
  if (process.execve === undefined || process.platform === 'win32') {
    throw new Failure(
      '--least-privilege is not to be had on this system, which cannot replace a running program; leave it out',
      2,
    );
  }
  const { read, write } = storeAccess(database);
  if (passwordFile !== undefined) read.push(path.resolve(passwordFile));
  const flags = [
    '--permission',
    // SQLite works on threads of its own; plants and PostgreSQL come over the network.
    '--allow-worker',
    '--allow-net',
    ...[...programFiles(), ...OWN_FIGURES, ...read].map(each => `--allow-fs-read=${each}`),
    ...write.map(each => `--allow-fs-write=${each}`),
    // Node warns of the two flags above, at every start and on every thread.
    '--disable-warning=PERM0006',
    '--disable-warning=ExperimentalWarning',
  ];
  const { file, args } = ownProgram();
  // In the environment, for an executable takes no flags of Node among its arguments.
  const options = [process.env.NODE_OPTIONS ?? '', ...flags.map(quoted)].join(' ');
  process.execve(file, [file, ...args, ...process.argv.slice(2)], { ...process.env, NODE_OPTIONS: options });
}

/** One flag in NODE_OPTIONS, https://nodejs.org/api/cli.html#node_optionsoptions */
function quoted(flag: string): string {
  return `"${flag.replace(/[\\"]/g, '\\$&')}"`;
}

/** What the kernel tells of the process itself, for /metrics; where there is no such file nothing is allowed. */
const OWN_FIGURES = ['fd', 'limits', 'stat', 'status'].map(name => `/proc/self/${name}`);

/** The program itself, without what else is in its folder, and the packages that it imports, which may lie beside it. */
function programFiles(): string[] {
  // An executable has them in its memory.
  if (isSea()) return [];
  const root = path.dirname(path.dirname(ownScript()));
  const own = ['bin', 'src', 'dist', 'package.json', 'node_modules'].map(each => path.join(root, each));
  const aPackage = fileURLToPath(import.meta.resolve('commander'));
  const marker = `${path.sep}node_modules${path.sep}`;
  return [...own, aPackage.slice(0, aPackage.lastIndexOf(marker) + marker.length)];
}

function storeAccess(database: string): FileAccess {
  const address = databaseAddressOf(database);
  if (address.engine === 'postgres') return { read: postgresFiles(address.address), write: [] };
  const folder = path.dirname(path.resolve(address.path));
  // Now, since Node gives no flush of a folder away under the permission model.
  explainFailure(address.path, () => makeFolder(folder));
  // A link may lead to a file in another folder, and the log and the lock lie beside that file.
  const folders = existsSync(address.path) ? [folder, path.dirname(realpathSync(address.path))] : [folder];
  return { read: folders, write: folders };
}

/** What the connection to PostgreSQL reads: the file of passwords as libpq finds it, and those of TLS. */
function postgresFiles({ rootCertificateFile, certificateFile, keyFile }: PostgresAddress): string[] {
  const passwordFile = process.env.PGPASSFILE || path.join(homedir(), '.pgpass');
  return [passwordFile, rootCertificateFile, certificateFile, keyFile]
    .filter(file => file !== undefined && file !== SYSTEM_ROOTS)
    .map(file => path.resolve(file!));
}
