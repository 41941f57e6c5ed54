import { once } from 'node:events';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { devNull } from 'node:os';
import { Command, Option } from 'commander';
import { csvLine } from '../contract/csv-line.ts';
import { checkedRevisions, Damaged, latestPlants } from '../store/audit/checked-revisions.ts';
import { folded } from '../store/folded-text.ts';
import { openReader } from '../store/open-store.ts';
import type { PlantFilter, PlantRevision } from '../store/plant-store.ts';
import { REVISION_CSV_HEADER, revisionCsv } from '../store/revision-csv.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './options/database-option.ts';
import { alignedColumns } from './output/aligned-columns.ts';
import { reportDamage } from './output/damage.ts';
import { Failure } from './output/failure.ts';
import { amount } from './output/progress-display.ts';
import { revisionJson, revisionText, tokenLabels } from './output/revision-text.ts';
import { visible } from './output/visible-text.ts';

/** Characters of one write to stdout. One write for each line is far slower. */
const CHUNK_LENGTH = 64 * 1024;

const HELP = `
A damaged revision is reported on stderr and not printed, and the exit code is 1.
If it is the latest revision of a plant, nothing is printed for this plant.

Example:
  $ npx plant-store export > plants.csv`;

export function exportCommand(): Command {
  return addDatabaseOptions(new Command('export'))
    .description('print all plants as they are when the export starts, sorted by id')
    .addOption(new Option('--format <format>', 'CSV or JSON Lines').choices(['csv', 'jsonl']).default('csv'))
    .option('--revisions', 'print every revision of each plant, with its time and the label of its token')
    .addHelpText('after', HELP)
    .action((options: PrintOptions) => printPlants(options, options.revisions ? 'revisions' : 'plants'));
}

interface PrintOptions extends DatabaseOptions, PlantFilter {
  format: keyof typeof LINES;
  revisions?: true;
  limit?: number;
}

/** @param what only the plants, or the latest or all revisions with number, time and token label */
export async function printPlants(
  options: PrintOptions,
  what: 'plants' | 'latest' | 'revisions',
): Promise<void> {
  if (isStdoutClosed()) throw new Failure('stdout is closed or discarded; print to a file or to a program');
  const { format } = options;
  const isRecord = what !== 'plants';
  await using reader = await openReader(readDatabase(options));
  let count = 0;
  let chunk = format === 'csv' ? (isRecord ? REVISION_CSV_HEADER : PLANT_CSV_HEADER) : '';
  const labelOf = tokenLabels(reader);
  const widths: number[] = [];
  const print = (lines: string) => write(format === 'text' ? alignedColumns(lines, widths) : lines);
  // `export` promises one state. `list | less` can wait for days, which must not hold up a service.
  const isList = what === 'latest';
  const all = checkedRevisions(
    isList ? reader.revisionsInSlices(options.from) : reader.revisions(options.from),
  );
  try {
    for await (const revision of what === 'revisions' ? all : latestPlants(all)) {
      if (revision instanceof Damaged) {
        reportDamage(revision);
        continue;
      }
      if (!isSelected(revision, options)) continue;
      chunk += LINES[format](revision, isRecord ? await labelOf(revision.recordedBy) : undefined);
      count++;
      if (count === options.limit) break;
      if (chunk.length >= CHUNK_LENGTH) {
        await print(chunk);
        chunk = '';
      }
    }
  } finally {
    // If a page is damaged, the rows before it are intact.
    await print(chunk);
  }
  console.error(`${amount(count, what === 'revisions' ? 'revision' : 'plant')} printed`);
}

/** The database would leave out a plant with a damaged tag without a message. */
function isSelected({ plant }: PlantRevision, options: PlantFilter): boolean {
  const { from = plant.id, name = '', tag = plant.tag } = options;
  return plant.id >= from && plant.tag === tag && folded(plant.name).includes(folded(name));
}

const PLANT_CSV_HEADER = csvLine(['id', 'name', 'tag']);

/** Lines for files (csv, jsonl) and terminals (json, text). Without a label, only the plant. */
const LINES = {
  csv: (each, label) => {
    const { id, name, tag } = each.plant;
    return label === undefined ? csvLine([String(id), name, tag]) : revisionCsv(each, label);
  },
  jsonl: (each, label) => `${revisionJson(each, label)}\n`,
  json: (each, label) => `${visible(revisionJson(each, label))}\n`,
  text: (each, label = '') => `plant ${each.plant.id}\t${revisionText(each, label)}\n`,
} satisfies Record<string, (each: PlantRevision, label: string | undefined) => string>;

/**
 * Whether stdout was closed when the process started (`>&-`). Then Node has opened the null device
 * for reading and writing, as Linux shows. `> /dev/null` opens it only for writing.
 */
function isStdoutClosed(): boolean {
  const stdout = '/proc/self/fd/1';
  if (!existsSync(stdout) || readlinkSync(stdout) !== devNull) return false;
  return /^flags:.*[26]$/m.test(readFileSync('/proc/self/fdinfo/1', 'latin1'));
}

/** Waits for a slow reader of stdout, so that memory use stays constant. */
async function write(chunk: string): Promise<void> {
  if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
}
