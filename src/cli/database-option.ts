import { Option } from 'commander';

/** Which store a command works on; the same for every command. */
export function databaseOption(): Option {
  return new Option('--database <url>', 'the store, as sqlite:PATH')
    .env('PLANT_STORE_DATABASE')
    .default('sqlite:./data/plant-store.db');
}
