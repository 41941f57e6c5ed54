import { Command } from 'commander';
import type { PlantRevision } from '../core/commit/plant-revision.ts';
import { shownDatabase } from '../engines/openers/database-url.ts';
import { openerOf } from '../engines/openers/open-store.ts';
import { alignedColumns } from '../formats/aligned-columns.ts';
import { amount } from '../formats/number-text.ts';
import { visible } from '../formats/visible-text.ts';
import { checkedRevisions, Damaged, revisionsOfPlant } from '../proof/checked-revisions.ts';
import { reportDamage } from './output/damage.ts';
import { revisionJson, revisionText, tokenLabels } from './output/revision-text.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './shared/database-option.ts';
import { Failure } from './shared/failure.ts';
import { parseId } from './shared/id-argument.ts';

export function showCommand(): Command {
  return addDatabaseOptions(new Command('show'))
    .description('print all revisions of a plant, oldest first')
    .argument('<id>', 'the id of the plant', parseId)
    .option('--json', 'print one JSON object')
    .action(show);
}

async function show(id: bigint, { json, ...options }: DatabaseOptions & { json?: true }): Promise<void> {
  const database = readDatabase(options);
  await using reader = await openerOf(database).openReader();
  const labelOf = tokenLabels(reader);
  const textOf = json ? revisionJson : revisionText;
  const texts: string[] = [];
  let last: PlantRevision | undefined;
  let isDamaged = false;
  for await (const each of revisionsOfPlant(checkedRevisions(reader.revisions(id)), id)) {
    if (each instanceof Damaged) {
      reportDamage(each);
      isDamaged = true;
    } else {
      texts.push(textOf(each, await labelOf(each.recordedBy)));
      last = each;
    }
  }
  if (last === undefined) {
    const reason = isDamaged ? `plant ${id} has no intact revision` : `there is no plant with the id ${id}`;
    throw new Failure(`${reason} in ${shownDatabase(database)}`);
  }
  const object = `{"id":${id},"revisions":[${texts.join()}]}`;
  console.log(json ? visible(object) : `plant ${id}\n${alignedColumns(texts.join('\n'))}`);
  if (!isDamaged && last.revision !== texts.length)
    throw new Failure(
      `plant ${id} has a revision ${last.revision}, but ${amount(texts.length, 'revision')} in all; run npx plant-store verify`,
    );
}
