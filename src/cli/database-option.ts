import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { databaseAddressOf } from '../store/database-url.ts';
import { StoreRefused } from '../store/plant-store.ts';
import { Failure } from './failure.ts';

/** What {@link addDatabaseOptions} adds. */
export interface DatabaseOptions {
  database: string;
  databasePasswordFile?: string;
}

/** Adds --database and --database-password-file: which store a command works on, the same for every command. */
export function addDatabaseOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--database <url>', 'the store: sqlite:PATH, or postgres://USER@HOST:PORT/DATABASE')
        .env('PLANT_STORE_DATABASE')
        .default('sqlite:./data/plant-store.db'),
    )
    .addOption(passwordFileOption());
}

export function passwordFileOption(): Option {
  return new Option(
    '--database-password-file <file>',
    'file that holds the password for PostgreSQL and nothing else',
  ).env('PLANT_STORE_DATABASE_PASSWORD_FILE');
}

/**
 * Reads what {@link addDatabaseOptions} added.
 *
 * @returns the address of the store, with a password from the file or from PGPASSWORD where it has none of its own
 * @throws {Failure} with exit code 2 when it is malformed
 */
export function readDatabase({ database, databasePasswordFile }: DatabaseOptions): string {
  const address = parseDatabase(database);
  if (address.engine === 'sqlite' || address.address.password !== undefined) return database;
  const password =
    databasePasswordFile === undefined ? process.env.PGPASSWORD : readPasswordFile(databasePasswordFile);
  if (!password) return database;
  return `${database}${database.includes('?') ? '&' : '?'}password=${encodeURIComponent(password)}`;
}

/** Never with the argument itself in the message, as commander's own have it: it may hold a password. */
function parseDatabase(text: string): ReturnType<typeof databaseAddressOf> {
  try {
    return databaseAddressOf(text);
  } catch (error) {
    if (error instanceof StoreRefused) throw new Failure(error.message, 2);
    throw error;
  }
}

function readPasswordFile(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Failure(`the password file ${file} cannot be read (${code})`, 2);
  }
}
