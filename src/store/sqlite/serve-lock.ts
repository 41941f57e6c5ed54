import { once } from 'node:events';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { StoreRejected } from '../plant-store.ts';
import { explainFailure, makeFile, prepareFile } from './database.ts';

/** https://sqlite.org/rescode.html#busy */
const SQLITE_BUSY = 5;

/**
 * Locks a store, so that only one service at a time uses it. Two would each take the other's
 * commits for their own.
 *
 * One lock is for the path: an exclusive transaction on a separate file beside the database. So
 * readers and the command line can still open the database. On Linux, another lock is for the
 * inode: it also holds after the file is renamed. The system releases both when the process ends.
 * @throws {StoreRejected}
 */
export async function takeServeLock(path: string): Promise<Disposable> {
  using locks = new DisposableStack();
  locks.use(explainFailure(path, () => lockPath(path)));
  locks.defer(await lockFile(path));
  return locks.move();
}

function lockPath(path: string): Disposable {
  // The file must exist before its real path can be resolved through symbolic links.
  prepareFile(path);
  const lockFilePath = `${realpathSync(path)}-serve-lock`;
  // Only the owner may read it: a reader could take a shared lock and block the service.
  makeFile(lockFilePath);
  const lock = new DatabaseSync(lockFilePath, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error;
    throw isServed(path, error);
  }
  return lock;
}

/**
 * Takes a name in the abstract socket namespace for the device and inode of the file
 * (https://man7.org/linux/man-pages/man7/unix.7.html). Containers with their own network do not
 * share these names, but `rejectSecondNames` rejects a file that is mounted into a container.
 */
async function lockFile(path: string): Promise<() => void> {
  if (process.platform !== 'linux') return () => {};
  const { dev, ino } = statSync(path, { bigint: true });
  const lock = createServer(socket => socket.destroy()).unref();
  try {
    lock.listen(`\0plant-store:${dev}:${ino}`);
    await once(lock, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') throw isServed(path, error);
    // Some sandboxes do not allow such sockets. The lock of the path remains.
    return () => {};
  }
  return () => lock.close();
}

function isServed(path: string, cause: unknown): StoreRejected {
  const advice = 'stop it first, or name another file with --database';
  return new StoreRejected(`another plant-store service is running on ${path}; ${advice}`, { cause });
}

/** Whether a service has ever used the store at this path. */
export function wasServed(path: string): boolean {
  return existsSync(path) && existsSync(`${realpathSync(path)}-serve-lock`);
}
