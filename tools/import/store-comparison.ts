import type { Command } from 'commander';
import { type DatabaseOptions, readDatabase } from '../../src/cli/shared/database-option.ts';
import { Failure } from '../../src/cli/shared/failure.ts';
import { readServiceAddress, type ServiceAddress } from '../../src/cli/shared/service-options.ts';
import { contentChecksum, isIntact } from '../../src/core/commit/checksum.ts';
import type { IntactRevision, PlantRevision } from '../../src/core/commit/plant-revision.ts';
import { isSameContent, type NewPlant } from '../../src/core/contract/plant.ts';
import { shownDatabase } from '../../src/engines/openers/database-url.ts';
import { openerOf } from '../../src/engines/openers/open-store.ts';
import type { PlantReader } from '../../src/engines/plant-reader.ts';
import { IDS_MAX } from './remembered-ids.ts';
import { hasToken, unusableStoreText } from './service-store.ts';

/** The store with which a dry run compares, or why there is none. */
export type ComparedStore =
  /** @property doubt why it may be another store than that of the service; undefined if it is that one */
  | { kind: 'store'; name: string; reader: PlantReader; doubt: string | undefined }
  | { kind: 'none'; why: string };

/** Which store a dry run needs. */
export interface ComparisonRequest {
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

/** What an import does with the plant of a row. */
export type Effect =
  | { kind: 'created' | 'unchanged' | 'damaged' }
  /** The store has other content under this id. */
  | { kind: 'changed'; stored: IntactRevision }
  /** An earlier row of the list gave the id this content. */
  | { kind: 'changed by list' };

/** Predicts what an import does with each row, if nobody else writes to the store meanwhile. */
export class StoreComparison {
  readonly #reader: PlantReader;
  readonly #replaces: boolean;
  /** Of ids to which an earlier row would have given new content: the checksum of that content. */
  readonly #written = new Map<bigint, bigint>();
  /** The latest revisions of the ids of the current rows. */
  #stored = new Map<bigint, PlantRevision>();
  /** Whether the store has the id of any row. */
  hasFoundPlants = false;

  /** @param replaces whether the import replaces stored content */
  constructor(reader: PlantReader, replaces: boolean) {
    this.#reader = reader;
    this.#replaces = replaces;
  }

  /** Reads what the store has of these plants, before {@link effectOf} is called for each. */
  async read(plants: readonly NewPlant[]): Promise<void> {
    const ids = [...new Set(plants.map(({ id }) => id))];
    const revisions = await this.#reader.latestRevisions(ids);
    this.hasFoundPlants ||= revisions.length > 0;
    this.#stored = new Map(revisions.map(revision => [revision.plant.id, revision]));
  }

  effectOf(plant: NewPlant): Effect {
    const written = this.#written.get(plant.id);
    if (written !== undefined) {
      const checksum = contentChecksum(plant);
      if (written === checksum) return { kind: 'unchanged' };
      if (this.#replaces) this.#written.set(plant.id, checksum);
      return { kind: 'changed by list' };
    }
    const stored = this.#stored.get(plant.id);
    if (stored === undefined) {
      this.#write(plant);
      return { kind: 'created' };
    }
    if (!isIntact(stored)) return { kind: 'damaged' };
    if (isSameContent(stored.plant, plant)) return { kind: 'unchanged' };
    if (this.#replaces) this.#write(plant);
    return { kind: 'changed', stored };
  }

  #write(plant: NewPlant): void {
    if (this.#written.size < IDS_MAX) this.#written.set(plant.id, contentChecksum(plant));
  }
}
