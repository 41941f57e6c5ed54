import { Command, InvalidArgumentError } from 'commander';
import { ID_RULE } from '../contract/errors.ts';
import { int64FromNumberText } from '../contract/int64.ts';
import { plantJson } from '../contract/plant.ts';
import { shownDatabase } from '../store/database-url.ts';
import { openReader } from '../store/open-store.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './database-option.ts';
import { Failure } from './failure.ts';
import { tokenLabels } from './token-labels.ts';
import { visible } from './visible-text.ts';

export function showCommand(): Command {
  return addDatabaseOptions(new Command('show'))
    .description('print all revisions of a plant, oldest first')
    .argument('<id>', 'the id of the plant', parseId)
    .action(show);
}

async function show(id: bigint, options: DatabaseOptions): Promise<void> {
  const database = readDatabase(options);
  await using reader = await openReader(database);
  const revisions = await reader.revisionsOf(id);
  if (revisions.length === 0) {
    throw new Failure(`there is no plant with the id ${id} in ${shownDatabase(database)}`);
  }
  const labelOf = await tokenLabels(reader);
  console.log(`plant ${id}`);
  for (const { plant, revision, recordedAt, recordedBy } of revisions) {
    const time = new Date(recordedAt).toISOString();
    console.log(`revision ${revision}  ${time}  by ${labelOf(recordedBy)}  ${visible(plantJson(plant))}`);
  }
}

function parseId(text: string): bigint {
  const id = int64FromNumberText(text);
  if (id === undefined) throw new InvalidArgumentError(`It must be ${ID_RULE}.`);
  return id;
}
