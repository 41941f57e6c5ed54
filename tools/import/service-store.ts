import type { Command } from 'commander';
import { type DatabaseOptions, readDatabase } from '../../src/cli/shared/database-option.ts';
import { Failure } from '../../src/cli/shared/failure.ts';
import { readServiceAddress, type ServiceAddress } from '../../src/cli/shared/service-options.ts';
import type { StoredPlant } from '../../src/client/plant-store.ts';
import { StoreRejected, StoreUnavailable } from '../../src/core/commit/store-errors.ts';
import { hashToken } from '../../src/core/tokens/token.ts';
import { databaseAddressOf, shownDatabase } from '../../src/engines/openers/database-url.ts';
import { openerOf } from '../../src/engines/openers/open-store.ts';
import type { PlantReader } from '../../src/engines/plant-reader.ts';

/**
 * Whether a store has a token. A token is random, so a store that has it is that of the service, or
 * a copy. A token of an OpenID provider is in no store.
 *
 * @returns undefined if this user cannot read the tokens
 */
async function hasToken(reader: PlantReader, token: string): Promise<boolean | undefined> {
  try {
    const hash = hashToken(token);
    return (await reader.tokens()).some(stored => stored.hash === hash);
  } catch (error) {
    if (unusableStoreText(error) === undefined) throw error;
    return undefined;
  }
}

/** Why a store cannot be used here; undefined if the error is not about that. */
function unusableStoreText(error: unknown): string | undefined {
  if (error instanceof Failure) return error.message;
  return error instanceof StoreRejected || error instanceof StoreUnavailable ? error.fault : undefined;
}

/** The store with which a dry run compares, or why there is none. */
export type ComparedStore =
  /** @property doubt why it may be another store than that of the service; undefined if it is that one */
  | { kind: 'store'; name: string; reader: PlantReader; doubt: string | undefined }
  | { kind: 'none'; why: string };

/** Which store a dry run needs. */
interface ComparisonRequest {
  /** Whether the user named the store by an option. It is compared without the token, too. */
  isNamed: boolean;
  /** Whether the dry run cannot go on without a comparison. */
  isRequired: boolean;
}

/**
 * Opens the store on this machine. If the user did not name it, and it lacks the token, it is not
 * compared: a comparison with another store than that of the service would be wrong.
 *
 * @throws {Failure | StoreRejected | StoreUnavailable} if a required store cannot be read or compared
 */
export async function openComparedStore(
  command: Command,
  { isNamed, isRequired }: ComparisonRequest,
): Promise<ComparedStore> {
  const service = givenService(command);
  try {
    const database = readDatabase(command.opts<DatabaseOptions>());
    const name = shownDatabase(database);
    const reader = await openerOf(database).openReader();
    const match = service && (await hasToken(reader, service.token));
    if (match !== false || isNamed)
      return { kind: 'store', name, reader, doubt: match ? undefined : doubtOf(service, match) };
    await reader[Symbol.asyncDispose]();
    const why = `${name} does not have the token of ${service!.tokenSource}, so it may not be the store of the service at ${service!.url}`;
    if (isRequired) throw new Failure(`${why}; name that store with --database`);
    return { kind: 'none', why };
  } catch (error) {
    const why = unusableStoreText(error);
    if (isRequired || why === undefined) throw error;
    return { kind: 'none', why };
  }
}

/** @returns undefined without a token, which a dry run does not need */
function givenService(command: Command): ServiceAddress | undefined {
  const { token, tokenFile } = command.opts<{ token?: string; tokenFile?: string }>();
  return token || tokenFile ? readServiceAddress(command) : undefined;
}

/** @param match whether the store has the token; undefined if that is unknown */
function doubtOf(service: ServiceAddress | undefined, match: boolean | undefined): string {
  if (service === undefined)
    return 'may be another than that of the service, since there is no token to tell';
  const why = match === false ? 'does not have' : 'does not show whether it has';
  return `${why} the token of ${service.tokenSource}, so it may be another than that of the service at ${service.url}`;
}

/** What other commands of this machine need to open the store of the service. */
export type ServiceStore =
  | { kind: 'options'; words: string[] }
  /** The address has a password, which is not printed. It is in the variable. */
  | { kind: 'variable' }
  /** The store is not on this machine, or it is not certain that it is that of the service. */
  | { kind: 'unknown' };

/**
 * Whether the store that commands read here is that of the service: it has the token and what the
 * import stored. A copy lacks the latter.
 *
 * @param lastPlant that the service confirmed
 */
export async function findServiceStore(
  command: Command,
  token: string,
  lastPlant: StoredPlant | undefined,
): Promise<ServiceStore> {
  const options = command.opts<DatabaseOptions>();
  try {
    await using reader = await openerOf(readDatabase(options)).openReader();
    const isSame = (await hasToken(reader, token)) && (await hasPlant(reader, lastPlant));
    return isSame ? namedStore(command, options) : { kind: 'unknown' };
  } catch (error) {
    if (unusableStoreText(error) === undefined) throw error;
    return { kind: 'unknown' };
  }
}

/** @param plant undefined: no response has confirmed one, so the token decides */
async function hasPlant(reader: PlantReader, plant: StoredPlant | undefined): Promise<boolean> {
  if (plant === undefined) return true;
  const [stored] = await reader.latestRevisions([plant.id]);
  return stored !== undefined && stored.revision >= plant.revision;
}

function namedStore(
  command: Command,
  { database, databasePasswordFile }: DatabaseOptions,
): Exclude<ServiceStore, { kind: 'unknown' }> {
  const address = databaseAddressOf(database);
  if (address.engine === 'postgres' && address.address.password !== undefined) return { kind: 'variable' };
  const url = command.getOptionValueSource('database') === 'default' ? [] : ['--database', database];
  const file =
    command.getOptionValueSource('databasePasswordFile') === 'cli'
      ? ['--database-password-file', databasePasswordFile!]
      : [];
  return { kind: 'options', words: [...url, ...file] };
}
