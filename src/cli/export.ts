import { once } from 'node:events';
import { Command, Option } from 'commander';
import { csvLine } from '../contract/csv-line.ts';
import { latestPlants } from '../store/latest-plants.ts';
import { openReader } from '../store/open-store.ts';
import { searchAll } from '../store/plant-search.ts';
import type { PlantFilter, PlantReader, PlantRevision } from '../store/plant-store.ts';
import { REVISION_CSV_HEADER, revisionCsv } from '../store/revision-csv.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './database-option.ts';
import { amount } from './progress-display.ts';
import { type IdForm, idsOption, revisionJson, revisionText, tokenLabels } from './revision-text.ts';
import { visible } from './visible-text.ts';

/** Characters of one write to stdout. One write for each line is far slower. */
const CHUNK_LENGTH = 64 * 1024;

export function exportCommand(): Command {
  return addDatabaseOptions(new Command('export'))
    .description('print all plants as they are when the export starts, sorted by id')
    .addOption(new Option('--format <format>', 'CSV or JSON Lines').choices(['csv', 'jsonl']).default('csv'))
    .addOption(idsOption())
    .option('--revisions', 'print every revision of each plant, with its time and the label of its token')
    .addHelpText('after', '\nExample:\n  $ npx plant-store export > plants.csv')
    .action((options: PrintOptions) => printPlants(options, options.revisions ? 'revisions' : 'plants'));
}

interface PrintOptions extends DatabaseOptions, PlantFilter {
  format: keyof typeof LINES;
  ids: IdForm;
  revisions?: true;
  limit?: number;
}

/** What to print, all with the number, time and token label of each revision except `plants`. */
const SELECTIONS = {
  plants: latestPlants,
  revisions: reader => reader.revisions(),
  search: (reader, options) => searchAll(reader, options, options.limit),
} satisfies Record<string, (reader: PlantReader, options: PrintOptions) => AsyncIterable<PlantRevision>>;

export async function printPlants(options: PrintOptions, selection: keyof typeof SELECTIONS): Promise<void> {
  const { format, ids } = options;
  const isRecord = selection !== 'plants';
  await using reader = await openReader(readDatabase(options));
  let count = 0;
  let chunk = format === 'csv' ? (isRecord ? REVISION_CSV_HEADER : PLANT_CSV_HEADER) : '';
  const labelOf = tokenLabels(reader);
  for await (const revision of SELECTIONS[selection](reader, options)) {
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
