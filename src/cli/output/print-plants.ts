import { once } from 'node:events';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { devNull } from 'node:os';
import type { PlantRevision } from '../../core/commit/plant-revision.ts';
import { ID_MIN } from '../../core/contract/limits.ts';
import { isSameContent } from '../../core/contract/plant.ts';
import { shownDatabase } from '../../engines/openers/database-url.ts';
import { openerOf } from '../../engines/openers/open-store.ts';
import type { PlantReader } from '../../engines/plant-reader.ts';
import { nameMatcher } from '../../engines/search/folded-text.ts';
import type { PlantFilter } from '../../engines/search/plant-search.ts';
import { alignedColumns } from '../../formats/aligned-columns.ts';
import { csvLine, REVISION_CSV_HEADER, revisionCsv } from '../../formats/csv.ts';
import { amount } from '../../formats/number-text.ts';
import { visible } from '../../formats/visible-text.ts';
import { type CheckedRevision, checkedRevisions, Damaged, plantsAt } from '../../proof/checked-revisions.ts';
import { type DatabaseOptions, readDatabase } from '../shared/database-option.ts';
import { Failure } from '../shared/failure.ts';
import { reportDamage } from './damage.ts';
import { revisionJson, revisionText, tokenLabels } from './revision-text.ts';

/** Characters of one write to stdout. A write for each line would be far slower. */
const CHUNK_LENGTH = 64 * 1024;

export interface PrintOptions extends DatabaseOptions, PlantFilter {
  format: keyof typeof LINES;
  revisions?: true;
  /** Milliseconds since 1970 UTC. */
  at?: number;
  changed?: true;
  limit?: number;
}

/** Only the plants, or the latest or all revisions, each with its number, time and token label. */
type Content = 'plants' | 'latest' | 'revisions';

/** Prints plants to stdout, and their number to stderr. @throws {Failure} if stdout is closed */
export async function printPlants(options: PrintOptions, content: Content): Promise<void> {
  if (isStdoutClosed()) throw new Failure('stdout is closed or discarded; print to a file or to a program');
  const { format } = options;
  const isRecord = content !== 'plants';
  const database = readDatabase(options);
  await using reader = await openerOf(database).openReader();
  let count = 0;
  let chunk = format === 'csv' ? (isRecord ? REVISION_CSV_HEADER : PLANT_CSV_HEADER) : '';
  const labelOf = tokenLabels(reader);
  const widths: number[] = [];
  const print = (lines: string) => write(format === 'text' ? alignedColumns(lines, widths) : lines);
  let newer = 0;
  try {
    for await (const revision of selectedRevisions(reader, options, content, () => newer++)) {
      chunk += LINES[format](revision, isRecord ? await labelOf(revision.recordedBy) : undefined);
      count++;
      if (count === options.limit) break;
      if (chunk.length >= CHUNK_LENGTH) {
        await print(chunk);
        chunk = '';
      }
    }
  } finally {
    // If a page is damaged, the rows before it are still printed.
    await print(chunk);
  }
  const noun = content === 'revisions' ? 'revision' : options.changed ? 'changed plant' : 'plant';
  const omitted = isRecord || options.at === undefined ? '' : `; ${amount(newer, 'newer plant')} not printed`;
  // In the wrong store, nothing has changed, or other plants have.
  const source = options.changed ? ` from the store ${shownDatabase(database)}` : '';
  console.error(`${amount(count, noun)} printed${source}${omitted}`);
  if (options.changed && count === 0)
    console.error(
      `WARNING: no plant of this store has other content now than at ${new Date(options.at!).toISOString()}; if a service has changed some, this is not its store: name that one with --database`,
    );
}

/** Yields what is to be printed, and reports damaged revisions. */
async function* selectedRevisions(
  reader: PlantReader,
  options: PrintOptions,
  content: Content,
  onNewer: () => void,
): AsyncIterable<PlantRevision> {
  // `export` promises one state of the store. `list` reads in parts, since a reader such as `less`
  // may wait for days, and must not delay a service.
  const rows = content === 'latest' ? reader.revisionsInSlices(options.from) : reader.revisions(options.from);
  const all = checkedRevisions(rows);
  const wanted =
    content === 'revisions' ? revisionsUntil(all, options.at) : plantsUntil(all, options, onNewer);
  const isSelected = selection(options);
  for await (const revision of wanted) {
    if (revision instanceof Damaged) reportDamage(revision);
    else if (isSelected(revision)) yield revision;
  }
}

async function* revisionsUntil(
  revisions: AsyncIterable<CheckedRevision>,
  time = Number.POSITIVE_INFINITY,
): AsyncIterable<CheckedRevision> {
  for await (const each of revisions) if (each instanceof Damaged || each.recordedAt <= time) yield each;
}

/** Yields the content of each plant at a time, by default now. @param onNewer called if it had none */
async function* plantsUntil(
  revisions: AsyncIterable<CheckedRevision>,
  { at = Number.POSITIVE_INFINITY, changed }: PrintOptions,
  onNewer: () => void,
): AsyncIterable<CheckedRevision> {
  for await (const each of plantsAt(revisions, at)) {
    if (each instanceof Damaged) {
      yield each;
      continue;
    }
    const { atTime, latest, isClockSetBack } = each;
    if (atTime === undefined) {
      onNewer();
      continue;
    }
    if (isClockSetBack) reportClock(atTime);
    if (!changed || !isSameContent(atTime.plant, latest.plant)) yield atTime;
  }
}

function reportClock({ plant: { id }, revision }: PlantRevision): void {
  console.error(
    `WARNING: a clock was set back, so the times of plant ${id} are not in the order of its revisions; its content is taken from revision ${revision}; compare npx plant-store show ${id}`,
  );
}

/** Filters here: a database query would omit a plant with a damaged tag without a message. */
function selection({ from = ID_MIN, name, tag }: PlantFilter): (revision: PlantRevision) => boolean {
  const isNamed = name === undefined ? () => true : nameMatcher(name);
  return ({ plant }) => plant.id >= from && (tag === undefined || plant.tag === tag) && isNamed(plant.name);
}

const PLANT_CSV_HEADER = csvLine(['id', 'name', 'tag']);

/** Formats for files (csv, jsonl) and for terminals (json, text). Without a label, only the plant. */
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
 * Whether stdout was closed when the process started (`>&-`). In this case, Node opens the null
 * device for reading and writing. `> /dev/null` opens it only for writing. Linux shows the
 * difference.
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
