import { Command, InvalidArgumentError } from 'commander';
import { PlantChanged, PlantStore, PlantStoreError } from '../client/plant-store.ts';
import { mayHaveStored } from '../client/plant-store-error.ts';
import { ERRORS } from '../core/contract/errors.ts';
import { REVISION_MAX } from '../core/contract/limits.ts';
import { newPlantJson, plantJson } from '../core/contract/plant.ts';
import { readRevisionNumber } from '../core/revision-condition.ts';
import { visible, withoutToken } from '../formats/visible-text.ts';
import { Failure } from './shared/failure.ts';
import { parseId } from './shared/id-argument.ts';
import { pipelinedTransport } from './shared/pipelined-transport.ts';
import {
  addServiceOptions,
  readServiceAddress,
  type ServiceAddress,
  unauthorizedText,
} from './shared/service-options.ts';

/** The time covers a restart of the service, and is acceptable for a person who waits. */
const RETRY_FOR_MS = 5_000;

export function addCommand(): Command {
  return addServiceOptions(new Command('add'))
    .description('send one plant to a running service and print what was stored')
    .argument(
      '<id>',
      'id of the plant: a 64-bit integer in decimal digits, with a minus sign if negative',
      parseId,
    )
    .argument('<name>', 'name of the plant', utf8Text)
    .option('--tag <tag>', 'tag of the plant', utf8Text)
    .option(
      '--if-revision <number>',
      'store it only if this is its latest revision; 0: only if there is no plant with this id',
      parseRevision,
    )
    .option('--json', 'print the stored plant as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ npx plant-store add 1000042 'Monstera deliciosa' --tag houseplant
  $ npx plant-store add -7 'Ficus lyrata' --if-revision 0 --json`,
    )
    .action(add);
}

/** Node replaces bytes of arguments that are not UTF-8. */
function utf8Text(text: string): string {
  if (!text.includes('\ufffd')) return text;
  throw new InvalidArgumentError('It is not UTF-8: use a terminal with UTF-8, or import a file.');
}

function parseRevision(text: string): number {
  const revision = readRevisionNumber(text);
  if (revision !== undefined) return revision;
  throw new InvalidArgumentError(`It must be an integer from 0 to ${REVISION_MAX}.`);
}

async function add(
  id: bigint,
  name: string,
  { tag, ifRevision, json: isJson }: { tag?: string; ifRevision?: number; json?: true },
  command: Command,
): Promise<void> {
  const address = readServiceAddress(command);
  // `fetch` does not connect to ports that browsers block, and has no error code for this.
  using transport = pipelinedTransport(address.url, 1);
  const store = new PlantStore({ ...address, transport: transport.send, retryForMs: RETRY_FOR_MS });
  try {
    const stored = await store.createPlant({ id, name, tag }, { ifRevision });
    const { revision, outcome } = stored;
    const json = `${newPlantJson(stored).slice(0, -1)},"revision":${revision},"outcome":"${outcome}"}`;
    const sentence = `${outcome} plant ${stored.id}, revision ${revision}: ${plantJson(stored)}`;
    console.log(visible(isJson ? json : sentence));
  } catch (error) {
    if (error instanceof PlantStoreError) throw failureOf(error, address);
    throw error;
  }
}

function failureOf(error: PlantStoreError, address: ServiceAddress): Failure {
  // The client rejected the arguments and sent nothing.
  if (error.error === ERRORS.notNewPlant.number && error.status === undefined)
    return new Failure(error.message, 2);
  const message = visible(withoutToken(error.message, address.token));
  if (error instanceof PlantChanged) {
    const { storedRevision } = error;
    const purpose = storedRevision === 0 ? 'store it as a new plant' : 'replace what is stored';
    return new Failure(`${message}; to ${purpose}, use --if-revision ${storedRevision}`);
  }
  if (error.status === 401) return new Failure(unauthorizedText(address, message));
  // The message of a response already says whether the plant may be stored.
  if (error.status !== undefined || !mayHaveStored(error)) return new Failure(message);
  return new Failure(`the plant may be stored; run the command again to make sure: ${message}`);
}
