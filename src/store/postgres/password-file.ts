import { Writable } from 'node:stream';
import pgpass from 'pgpass';
import { StoreRejected } from '../plant-store.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';

/** Why pgpass ignored the password file, for example because other users may read it. */
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
 * Looks up the password in the file that PGPASSFILE names, or in ~/.pgpass.
 *
 * @throws {StoreRejected} when the file has no matching password
 */
export async function passwordFromFile(
  { database, user }: PostgresAddress,
  { host, port }: HostAddress,
): Promise<string> {
  warning = '';
  // By default pgpass writes a warning to stderr at every connection. Here it goes into the error.
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
