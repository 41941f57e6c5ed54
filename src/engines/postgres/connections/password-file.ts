import pgpass from 'pgpass';
import { StoreRejected } from '../../../core/commit/store-errors.ts';
import type { HostAddress, PostgresAddress } from '../postgres-url.ts';

/**
 * Reads PGPASSFILE or ~/.pgpass. pgpass writes to stderr why it ignores a file.
 *
 * @throws {StoreRejected} if there is no password
 */
export async function passwordFromFile(
  { database, user }: PostgresAddress,
  { host, port }: HostAddress,
): Promise<string> {
  const password = await new Promise<string | undefined>(found => {
    pgpass({ host, port, database, user }, found);
  });
  if (password === undefined) {
    throw new StoreRejected('the server asks for a password', {
      advice: 'give one with PGPASSWORD, PGPASSFILE or PLANT_STORE_DATABASE_PASSWORD_FILE',
    });
  }
  return password;
}
