import { Command, InvalidArgumentError } from 'commander';
import { ID_RULE } from '../contract/errors.ts';
import { int64FromNumberText } from '../contract/int64.ts';
import { plantJson } from '../contract/plant.ts';
import { openReader } from '../store/open-store.ts';
import { databaseOption } from './database-option.ts';
import { Failure } from './failure.ts';

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

/** Writes characters that a terminal obeys, or shows not at all, as JSON escapes; the text stays the same JSON. */
function visible(json: string): string {
  return json.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character =>
    Array.from(
      { length: character.length },
      (_, unit) => `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

function parseId(text: string): bigint {
  const id = int64FromNumberText(text);
  if (id === undefined) throw new InvalidArgumentError(`It must be ${ID_RULE}.`);
  return id;
}
