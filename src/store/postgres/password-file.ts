import { Writable } from 'node:stream';
import pgpass from 'pgpass';
import { PasswordWanted } from './failure.ts';
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
 * @throws {PasswordWanted} when it is not there
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
  if (password === undefined) throw new PasswordWanted(warning);
  return password;
}
