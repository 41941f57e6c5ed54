import { Command, InvalidArgumentError } from 'commander';
import { ID_RULE } from '../contract/errors.ts';
import { int64FromNumberText } from '../contract/int64.ts';
import { shownDatabase } from '../store/database-url.ts';
import { openReader } from '../store/open-store.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './database-option.ts';
import { Failure } from './failure.ts';
import { type IdForm, idsOption, revisionJson, revisionText, tokenLabels, withIds } from './revision-text.ts';
import { visible } from './visible-text.ts';

export function showCommand(): Command {
  return addDatabaseOptions(new Command('show'))
    .description('print all revisions of a plant, oldest first')
    .argument('<id>', 'the id of the plant', parseId)
    .option('--json', 'print one JSON object')
    .addOption(idsOption())
    .action(show);
}

async function show(id: bigint, options: DatabaseOptions & { json?: true; ids: IdForm }): Promise<void> {
  const { json, ids } = options;
  const database = readDatabase(options);
  await using reader = await openReader(database);
  const revisions = await reader.revisionsOf(id);
  if (revisions.length === 0) {
    throw new Failure(`there is no plant with the id ${id} in ${shownDatabase(database)}`);
  }
  const labelOf = tokenLabels(reader);
  const textOf = json ? revisionJson : revisionText;
  const texts: string[] = [];
  for (const each of revisions) texts.push(textOf(each, await labelOf(each.recordedBy), ids));
  const object = withIds(ids, `{"id":${id},"revisions":[${texts.join()}]}`);
  console.log(json ? visible(object) : [`plant ${id}`, ...texts].join('\n'));
}

export function parseId(text: string): bigint {
  const id = int64FromNumberText(text);
  if (id === undefined) throw new InvalidArgumentError(`It must be ${ID_RULE}.`);
  return id;
}
