import { Writable } from 'node:stream';
import pgpass from 'pgpass';
import { StoreRejected } from '../plant-store.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';

/** Why a password file was ignored, such as one that others may read. */
let warning = '';
const warnings = new Writable({
  write(text, _encoding, done) {
    warning = String(text)
      .replace(/^WARNING: /, '')
      .trim();
    done();
  },
});

/**
 * Looks the password up in the file that PGPASSFILE names, or in ~/.pgpass.
 *
 * @throws {StoreRejected} when it is not there
 */
export async function passwordFromFile(
  { database, user }: PostgresAddress,
  { host, port }: HostAddress,
): Promise<string> {
  warning = '';
  // By default pgpass warns on stderr at every connection; here the warning becomes part of the error.
  pgpass.warnTo(warnings);
  const password = await new Promise<string | undefined>(found => {
    pgpass({ host, port, database, user }, found);
  });
  if (password === undefined) {
    throw new StoreRejected(
      `the server asks for a password${warning && ` (${warning})`}; give one with PGPASSWORD, PGPASSFILE or PLANT_STORE_DATABASE_PASSWORD_FILE`,
    );
  }
  return password;
}
