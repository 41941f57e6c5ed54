import { Writable } from 'node:stream';
import pgpass from 'pgpass';
import { PasswordWanted } from './failure.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';

/** Why a password file was passed over, such as one that others may read. */
let passedOver = '';

/**
 * Looks the password up in the file that PGPASSFILE names, or in ~/.pgpass.
 *
 * @throws {PasswordWanted} when it is not there
 */
export async function passwordFromFile(
  { database, user }: PostgresAddress,
  { host, port }: HostAddress,
): Promise<string> {
  passedOver = '';
  // It would say so on stderr, for every connection; here it becomes part of the error.
  pgpass.warnTo(
    new Writable({
      write(text, _encoding, done) {
        passedOver = String(text)
          .replace(/^WARNING: /, '')
          .trim();
        done();
      },
    }),
  );
  const password = await new Promise<string | undefined>(found => {
    pgpass({ host, port, database, user }, found);
  });
  if (password === undefined) throw new PasswordWanted(passedOver);
  return password;
}
