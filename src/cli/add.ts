import { Command } from 'commander';
import { PlantStore, PlantStoreError, type StoredPlant } from '../client/plant-store.ts';
import { mayHaveStored } from '../client/plant-store-error.ts';
import { newPlantJson, plantJson } from '../contract/plant.ts';
import { Failure } from './failure.ts';
import { addServiceOptions, readServiceAddress } from './service-options.ts';
import { visible, withoutToken } from './visible-text.ts';

/** A person waits for it: long enough for a restart of the service, and no longer. */
const RETRY_FOR_MS = 5_000;

export function addCommand(): Command {
  return addServiceOptions(new Command('add'))
    .description('send one plant to a running service and print what was stored')
    .argument('<id>', 'the id of the plant')
    .argument('<name>', 'its name')
    .option('--tag <tag>', 'its tag')
    .option('--json', 'print what was stored as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ npx plant-store add 1000042 'Monstera deliciosa' --tag houseplant
  $ npx plant-store add --json -- -7 'Ficus lyrata'`,
    )
    .action(add);
}

async function add(
  id: string,
  name: string,
  options: { tag?: string; json?: true },
  command: Command,
): Promise<void> {
  const address = readServiceAddress(command);
  const store = new PlantStore({ ...address, retryForMs: RETRY_FOR_MS });
  try {
    const stored = await store.createPlant({ id, name, tag: options.tag });
    console.log(options.json ? storedPlantJson(stored) : sentenceOf(stored));
  } catch (error) {
    if (error instanceof PlantStoreError) throw failureOf(error, address.token);
    throw error;
  }
}

function sentenceOf(stored: StoredPlant): string {
  const { id, revision, outcome } = stored;
  return `${outcome} plant ${id}, revision ${revision}: ${visible(plantJson(stored))}`;
}

/** The id as a JSON number, digit for digit, which few readers of JSON keep beyond 2^53. */
function storedPlantJson(stored: StoredPlant): string {
  const { revision, outcome } = stored;
  return visible(`${newPlantJson(stored).slice(0, -1)},"revision":${revision},"outcome":"${outcome}"}`);
}

function failureOf(error: PlantStoreError, token: string): Failure {
  // Nothing was sent: the plant itself is asked for wrongly.
  if (error.error === 40002 && error.status === undefined) return new Failure(error.message, 2);
  const message = visible(withoutToken(error.message, token));
  if (error.status === 401) {
    return new Failure(`${message}; make one with: npx plant-store token create LABEL`);
  }
  if (error.status === 404)
    return new Failure(`${message}; --url is the base address of a plant store, without /plants`);
  // An answer says by itself what it leaves open.
  if (error.status !== undefined || !mayHaveStored(error)) return new Failure(message);
  return new Failure(`the plant may be stored or not, and sending it again settles that: ${message}`);
}
