import { Command, InvalidArgumentError } from 'commander';
import { ID_RULE } from '../contract/errors.ts';
import { int64FromNumberText } from '../contract/int64.ts';
import { checkedRevisions, Damaged, revisionsOfPlant } from '../store/audit/checked-revisions.ts';
import { shownDatabase } from '../store/database-url.ts';
import { openReader } from '../store/open-store.ts';
import type { PlantRevision } from '../store/plant-store.ts';
import { atOption } from './options/at-option.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './options/database-option.ts';
import { alignedColumns } from './output/aligned-columns.ts';
import { reportDamage } from './output/damage.ts';
import { Failure } from './output/failure.ts';
import { amount } from './output/progress-display.ts';
import {
  type IdForm,
  idsOption,
  revisionJson,
  revisionText,
  tokenLabels,
  withIds,
} from './output/revision-text.ts';
import { visible } from './output/visible-text.ts';

export function showCommand(): Command {
  return addDatabaseOptions(new Command('show'))
    .description('print all revisions of a plant, oldest first')
    .argument('<id>', 'the id of the plant', parseId)
    .option('--json', 'print one JSON object')
    .addOption(idsOption())
    .addOption(atOption())
    .action(show);
}

interface ShowOptions extends DatabaseOptions {
  json?: true;
  ids: IdForm;
  at?: number;
}

async function show(id: bigint, options: ShowOptions): Promise<void> {
  const { json, ids, at = Infinity } = options;
  const database = readDatabase(options);
  await using reader = await openReader(database);
  const labelOf = tokenLabels(reader);
  const textOf = json ? revisionJson : revisionText;
  const texts: string[] = [];
  const revisions = await Array.fromAsync(revisionsOfPlant(checkedRevisions(reader.revisions(id)), id));
  const intact: PlantRevision[] = [];
  for (const each of revisions) {
    if (each instanceof Damaged) {
      reportDamage(each);
      continue;
    }
    intact.push(each);
    if (each.recordedAt <= at) texts.push(textOf(each, await labelOf(each.recordedBy), ids));
  }
  const isDamaged = intact.length < revisions.length;
  if (texts.length === 0) {
    const reason =
      revisions.length > 0
        ? `plant ${id} has no ${isDamaged ? 'intact ' : ''}revision${options.at === undefined ? '' : ' of that time'}`
        : `there is no plant with the id ${id}`;
    throw new Failure(`${reason} in ${shownDatabase(database)}`);
  }
  const object = withIds(ids, `{"id":${id},"revisions":[${texts.join()}]}`);
  console.log(json ? visible(object) : `plant ${id}\n${alignedColumns(texts.join('\n'))}`);
  const { revision } = intact.at(-1)!;
  if (!isDamaged && revision !== intact.length) {
    throw new Failure(
      `plant ${id} has a revision ${revision}, but ${amount(intact.length, 'revision')} in all; run npx plant-store verify`,
    );
  }
}

export function parseId(text: string): bigint {
  const id = int64FromNumberText(text);
  if (id === undefined) throw new InvalidArgumentError(`It must be ${ID_RULE}.`);
  return id;
}
