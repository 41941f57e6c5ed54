import type { Command, Option } from 'commander';
import { type DatabaseAddress, databaseAddressOf } from '../store/database-url.ts';
import { StoreRejected } from '../store/plant-store.ts';
import { Failure } from './failure.ts';
import { readSecretFile, setting } from './setting.ts';

export interface DatabaseOptions {
  database: string;
  databasePasswordFile?: string;
}

/** Never with its name, which may be the password, put where the name belongs. */
const PASSWORD_FILE = 'the file that --database-password-file or PLANT_STORE_DATABASE_PASSWORD_FILE names';

/** Adds --database and --database-password-file: which store a command works on, the same for every command. */
export function addDatabaseOptions(command: Command): Command {
  return command.addOption(databaseOption()).addOption(passwordFileOption());
}

export function databaseOption(
  description = 'the store: sqlite:PATH, or postgres://USER@HOST:PORT/DATABASE',
): Option {
  return setting('--database <url>', description, undefined, 'sqlite:./data/plant-store.db');
}

export function passwordFileOption(): Option {
  const description = 'file that holds the password for PostgreSQL and nothing else';
  return setting('--database-password-file <file>', description);
}

/**
 * Reads what {@link addDatabaseOptions} added.
 *
 * @returns the address of the store, with a password from the file or from PGPASSWORD where it has none of its own
 * @throws {Failure} with exit code 2 when it is malformed
 */
export function readDatabase({ database, databasePasswordFile: file }: DatabaseOptions): string {
  const address = parseDatabase(database);
  if (address.engine === 'sqlite' || address.address.password !== undefined) return database;
  const password = file ? readSecretFile(file, PASSWORD_FILE, 'password') : process.env.PGPASSWORD;
  if (!password) return database;
  return `${database}${database.includes('?') ? '&' : '?'}password=${encodeURIComponent(password)}`;
}

/** Never with the argument itself in the message, as commander's own have it: it may hold a password. */
function parseDatabase(text: string): DatabaseAddress {
  try {
    return databaseAddressOf(text);
  } catch (error) {
    if (error instanceof StoreRejected) throw new Failure(error.message, 2);
    throw error;
  }
}
