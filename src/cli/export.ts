import { once } from 'node:events';
import { Command, Option } from 'commander';
import { newPlantJson } from '../contract/plant.ts';
import { openReader } from '../store/open-store.ts';
import type { PlantRevision } from '../store/plant-store.ts';
import { csvLine } from './csv-line.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './database-option.ts';
import { tokenLabels } from './token-labels.ts';

/** Characters of one write to stdout. One write for each line is far slower. */
const CHUNK_LENGTH = 64 * 1024;

export function exportCommand(): Command {
  return addDatabaseOptions(new Command('export'))
    .description('print all plants as they are when the export starts, sorted by id')
    .addOption(new Option('--format <format>', 'CSV or JSON Lines').choices(['csv', 'jsonl']).default('csv'))
    .option('--revisions', 'print every revision of each plant, with its time and the label of its token')
    .addHelpText('after', '\nExample:\n  $ npx plant-store export > plants.csv')
    .action(exportPlants);
}

async function exportPlants(
  options: DatabaseOptions & { format: string; revisions?: boolean },
): Promise<void> {
  const { format, revisions = false } = options;
  await using reader = await openReader(readDatabase(options));
  const lineOf = format === 'csv' ? csvLineOf : jsonLineOf;
  let count = 0;
  let chunk = format === 'csv' ? csvLine(revisions ? REVISION_COLUMNS : PLANT_COLUMNS) : '';
  let labelOf: ((tokenId: number) => string) | undefined;
  for await (const revision of revisions ? reader.revisions() : latestOf(reader.revisions())) {
    if (revisions) labelOf ??= await tokenLabels(reader);
    chunk += lineOf(revision, labelOf?.(revision.recordedBy));
    count++;
    if (chunk.length >= CHUNK_LENGTH) {
      await write(chunk);
      chunk = '';
    }
  }
  await write(chunk);
  console.error(`${count.toLocaleString('en')} ${revisions ? 'revisions' : 'plants'} exported`);
}

/** The last revision of each plant. @param revisions in the order of ids, then revision numbers */
export async function* latestOf(revisions: AsyncIterable<PlantRevision>): AsyncIterable<PlantRevision> {
  let last: PlantRevision | undefined;
  for await (const revision of revisions) {
    if (last !== undefined && last.plant.id !== revision.plant.id) yield last;
    last = revision;
  }
  if (last !== undefined) yield last;
}

const PLANT_COLUMNS = ['id', 'name', 'tag'];
const REVISION_COLUMNS = ['id', 'revision', 'name', 'tag', 'recorded_at', 'recorded_by'];

/** @param recordedBy the label of the token that sent it; undefined: write only the plant */
function csvLineOf(
  { plant: { id, name, tag }, revision, recordedAt }: PlantRevision,
  recordedBy: string | undefined,
): string {
  if (recordedBy === undefined) return csvLine([String(id), name, tag]);
  return csvLine([String(id), String(revision), name, tag, new Date(recordedAt).toISOString(), recordedBy]);
}

/** As {@link csvLineOf}. */
function jsonLineOf({ plant, revision, recordedAt }: PlantRevision, recordedBy: string | undefined): string {
  if (recordedBy === undefined) return `${newPlantJson(plant)}\n`;
  const record = { revision, recorded_at: new Date(recordedAt).toISOString(), recorded_by: recordedBy };
  return `${newPlantJson(plant).slice(0, -1)},${JSON.stringify(record).slice(1)}\n`;
}

/** Waits for a slow reader of stdout, so that memory use stays constant. */
async function write(chunk: string): Promise<void> {
  if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
}
