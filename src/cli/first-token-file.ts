import * as fs from 'node:fs';
import { hashToken } from '../core/tokens/token.ts';
import { type DatabaseAddress, fileBeside } from '../engines/openers/database-url.ts';
import { openerOf } from '../engines/openers/open-store.ts';

/** @returns the file for the first token, beside the SQLite file; undefined on PostgreSQL */
export function firstTokenFile(database: DatabaseAddress): string | undefined {
  return fileBeside(database, '-first-token');
}

/**
 * Hands the first token over before the store has it. Without a terminal, other people may read
 * stderr in a journal, so a new file gets the token. Its name ends in `.partial` until the store
 * has the token.
 *
 * @returns false if neither a terminal nor a new file can show the token
 */
export function handOverFirstToken(token: string, database: DatabaseAddress): boolean {
  if (process.stderr.isTTY) return true;
  const file = firstTokenFile(database);
  // A link may lead nowhere, and its name is still in use.
  if (file === undefined || fs.lstatSync(file, { throwIfNoEntry: false })) return false;
  const partial = partialOf(file);
  fs.rmSync(partial, { force: true });
  // `as` is synchronous. Node's permission model forbids `fsync`.
  fs.writeFileSync(partial, `${token}\n`, { flag: 'as', mode: 0o600 });
  return true;
}

/**
 * Gives the file its final name, also if an earlier start was killed before it.
 *
 * @returns the token; undefined if there is no new file, or the store does not have its token
 */
export async function publishFirstToken(database: DatabaseAddress): Promise<string | undefined> {
  const file = firstTokenFile(database);
  if (file === undefined) return undefined;
  const partial = partialOf(file);
  if (!fs.existsSync(partial)) return undefined;
  const token = fs.readFileSync(partial, 'utf8').trimEnd();
  await using reader = await openerOf(database).openReader();
  const isStored = (await reader.tokens()).some(({ hash }) => hash === hashToken(token));
  if (isStored) fs.renameSync(partial, file);
  else fs.rmSync(partial);
  return isStored ? token : undefined;
}

function partialOf(file: string): string {
  return `${file}.partial`;
}
