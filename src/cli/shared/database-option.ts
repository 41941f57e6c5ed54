import { resolve } from 'node:path';
import type { Command, Option } from 'commander';
import { InvalidDatabaseUrl } from '../../engines/invalid-database-url.ts';
import { type DatabaseAddress, databaseAddressOf } from '../../engines/openers/database-url.ts';
import { Failure } from './failure.ts';
import { readTextFile, rejectControlCharacters, setting } from './setting.ts';

export interface DatabaseOptions {
  database: string;
  databasePasswordFile?: string;
}

const DEFAULT_DATABASE_URL = 'sqlite:./data/plant-store.db';
/** Messages do not show the name of the file, since a user may have given the password instead. */
const PASSWORD_FILE = 'the file that --database-password-file or PLANT_STORE_DATABASE_PASSWORD_FILE names';

/** Adds --database and --database-password-file. @param initial the default URL */
export function addDatabaseOptions(command: Command, initial?: string): Command {
  return command.addOption(databaseOption(undefined, initial)).addOption(passwordFileOption());
}

export function databaseOption(
  description = 'the store: sqlite:PATH, or postgres://USER@HOST:PORT/DATABASE',
  initial = DEFAULT_DATABASE_URL,
): Option {
  return setting('--database <url>', description, undefined, initial);
}

export function passwordFileOption(description = 'file that contains only the PostgreSQL password'): Option {
  return setting('--database-password-file <file>', description);
}

/**
 * Reads the address of the store. The password is that of the URL, else of the file, else of
 * PGPASSWORD. The default store gets its folder. A missing folder elsewhere is probably a typing
 * error.
 *
 * @param initial the default URL
 * @throws {Failure} with exit code 2 if the URL is invalid or the file cannot be read
 */
export function readDatabase(
  { database: url, databasePasswordFile: file }: DatabaseOptions,
  initial = DEFAULT_DATABASE_URL,
): DatabaseAddress {
  const database = parseDatabase(url);
  if (database.engine === 'sqlite') return { ...database, makesFolder: isSamePath(database, initial) };
  if (database.address.password !== undefined) return database;
  const password =
    (file ? readTextFile(file, PASSWORD_FILE, 'password') : process.env.PGPASSWORD) || undefined;
  return { ...database, address: { ...database.address, password } };
}

function isSamePath({ path }: { path: string }, url: string): boolean {
  const other = databaseAddressOf(url);
  return other.engine === 'sqlite' && resolve(other.path) === resolve(path);
}

/** A parser of commander would repeat the URL in its message, with a password. */
function parseDatabase(text: string): DatabaseAddress {
  rejectControlCharacters(text, 'the database URL');
  try {
    return databaseAddressOf(text);
  } catch (error) {
    if (error instanceof InvalidDatabaseUrl) throw new Failure(error.message, 2);
    throw error;
  }
}
