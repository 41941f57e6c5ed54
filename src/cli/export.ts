import { once } from 'node:events';
import { Command, Option } from 'commander';
import { csvLine } from '../contract/csv-line.ts';
import { type CheckedRevision, checkedRevisions, latestPlants } from '../store/checked-revisions.ts';
import { openReader } from '../store/open-store.ts';
import type { PlantFilter, PlantRevision } from '../store/plant-store.ts';
import { REVISION_CSV_HEADER, revisionCsv } from '../store/revision-csv.ts';
import { atOption } from './at-option.ts';
import { intactRevisions } from './damage.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './database-option.ts';
import { amount } from './progress-display.ts';
import { type IdForm, idsOption, revisionJson, revisionText, tokenLabels } from './revision-text.ts';
import { visible } from './visible-text.ts';

/** Characters of one write to stdout. One write for each line is far slower. */
const CHUNK_LENGTH = 64 * 1024;

const HELP = `
A damaged revision is reported on stderr and not printed, and the exit code is 1.
If it is the latest revision of a plant, nothing is printed for this plant.

With --at, a revision counts from the time that was recorded with it. If the clock
was set back, a higher revision may have an earlier time: the highest counts.

Examples:
  $ npx plant-store export > plants.csv
  $ npx plant-store export --at 2026-05-01T00:00Z`;

export function exportCommand(): Command {
  return addDatabaseOptions(new Command('export'))
    .description('print all plants as they are when the export starts, sorted by id')
    .addOption(new Option('--format <format>', 'CSV or JSON Lines').choices(['csv', 'jsonl']).default('csv'))
    .addOption(idsOption())
    .option('--revisions', 'print every revision of each plant, with its time and the label of its token')
    .addOption(atOption())
    .addHelpText('after', HELP)
    .action((options: PrintOptions) => printPlants(options, options.revisions ? 'revisions' : 'plants'));
}

interface PrintOptions extends DatabaseOptions, PlantFilter {
  format: keyof typeof LINES;
  ids: IdForm;
  revisions?: true;
  limit?: number;
  at?: number;
}

/** What to print, all with the number, time and token label of each revision except `plants`. */
const SELECTIONS = {
  plants: (revisions, { at }) => intactRevisions(latestPlants(revisions, at)),
  revisions: (revisions, { at = Infinity }) =>
    filter(intactRevisions(revisions), each => each.recordedAt <= at),
  search: (revisions, options) =>
    filter(intactRevisions(latestPlants(revisions)), isSelectedBy(options), options.limit),
} satisfies Record<
  string,
  (revisions: AsyncIterable<CheckedRevision>, options: PrintOptions) => AsyncIterable<PlantRevision>
>;

/** The database does not select the plants: a damaged tag would make it leave out a plant. */
function isSelectedBy({ name = '', tag }: PlantFilter): (each: PlantRevision) => boolean {
  return ({ plant }) => plant.name.startsWith(name) && (tag === undefined || plant.tag === tag);
}

async function* filter(
  revisions: AsyncIterable<PlantRevision>,
  isSelected: (each: PlantRevision) => boolean,
  limit = Infinity,
): AsyncIterable<PlantRevision> {
  let count = 0;
  for await (const each of revisions) {
    if (!isSelected(each)) continue;
    yield each;
    if (++count === limit) return;
  }
}

export async function printPlants(options: PrintOptions, selection: keyof typeof SELECTIONS): Promise<void> {
  const { format, ids } = options;
  const isRecord = selection !== 'plants';
  await using reader = await openReader(readDatabase(options));
  let count = 0;
  let chunk = format === 'csv' ? (isRecord ? REVISION_CSV_HEADER : PLANT_CSV_HEADER) : '';
  const labelOf = tokenLabels(reader);
  const revisions = checkedRevisions(reader.revisions(options.from));
  for await (const revision of SELECTIONS[selection](revisions, options)) {
    chunk += LINES[format](revision, isRecord ? await labelOf(revision.recordedBy) : undefined, ids);
    count++;
    if (chunk.length >= CHUNK_LENGTH) {
      await write(chunk);
      chunk = '';
    }
  }
  await write(chunk);
  console.error(`${amount(count, selection === 'revisions' ? 'revision' : 'plant')} printed`);
}

const PLANT_CSV_HEADER = csvLine(['id', 'name', 'tag']);

/** Lines for files (csv, jsonl) and terminals (json, text). Without a label, only the plant. */
const LINES = {
  csv: (each, label) => {
    const { id, name, tag } = each.plant;
    return label === undefined ? csvLine([String(id), name, tag]) : revisionCsv(each, label);
  },
  jsonl: (each, label, ids) => `${revisionJson(each, label, ids)}\n`,
  json: (each, label, ids) => `${visible(revisionJson(each, label, ids))}\n`,
  text: (each, label = '') => `plant ${each.plant.id}  ${revisionText(each, label)}\n`,
} satisfies Record<string, (each: PlantRevision, label: string | undefined, ids: IdForm) => string>;

/** Waits for a slow reader of stdout, so that memory use stays constant. */
async function write(chunk: string): Promise<void> {
  if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
}
