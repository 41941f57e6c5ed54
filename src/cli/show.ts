import { Command, InvalidArgumentError } from 'commander';
import { ID_RULE } from '../contract/errors.ts';
import { int64FromNumberText } from '../contract/int64.ts';
import { plantJson } from '../contract/plant.ts';
import { openReader } from '../store/open-store.ts';
import { databaseOption } from './database-option.ts';
import { Failure } from './failure.ts';
import { visible } from './visible-text.ts';

export function showCommand(): Command {
  return new Command('show')
    .description('print a plant with all its revisions, oldest first')
    .argument('<id>', 'the id of the plant', parseId)
    .addOption(databaseOption())
    .action(show);
}

function show(id: bigint, { database }: { database: string }): void {
  const reader = openReader(database);
  try {
    const revisions = reader.revisionsOf(id);
    if (revisions.length === 0) throw new Failure(`there is no plant with the id ${id} in ${database}`);
    console.log(`plant ${id}`);
    for (const { plant, revision, recordedAt, recordedBy } of revisions) {
      const time = new Date(recordedAt).toISOString();
      console.log(`revision ${revision}  ${time}  by ${recordedBy}  ${visible(plantJson(plant))}`);
    }
  } finally {
    reader.close();
  }
}

function parseId(text: string): bigint {
  const id = int64FromNumberText(text);
  if (id === undefined) throw new InvalidArgumentError(`It must be ${ID_RULE}.`);
  return id;
}
