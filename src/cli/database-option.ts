import { InvalidArgumentError, Option } from 'commander';
import { sqlitePathOf } from '../store/database-url.ts';

/** Which store a command works on; the same for every command. */
export function databaseOption(): Option {
  return new Option('--database <url>', 'the store, as sqlite:PATH')
    .env('PLANT_STORE_DATABASE')
    .argParser(checkDatabase)
    .default('sqlite:./data/plant-store.db');
}

function checkDatabase(text: string): string {
  try {
    sqlitePathOf(text);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
  return text;
}
