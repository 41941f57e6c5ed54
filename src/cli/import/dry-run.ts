import { ERRORS } from '../../core/contract/errors.ts';
import { BODY_BYTES_MAX } from '../../core/contract/limits.ts';
import { newPlantJson } from '../../core/contract/plant.ts';
import { Failure } from '../output/failure.ts';
import { amount, formatCount } from '../output/number-text.ts';
import { CountedProgress } from '../output/progress-display.ts';
import { quoted } from '../output/visible-text.ts';
import { fileName, plantFileSize, totalSize } from './file-bytes.ts';
import { type IdRule, MadeIds } from './made-ids.ts';
import { fileRows, type Reading } from './plant-file.ts';
import { lineBreakText, type PlantRow } from './plant-row.ts';

const IDS_MAX = 1_000_000;
/** Maximum of lines about each kind of doubtful row. Rejected rows have no maximum. */
const EXAMPLES_MAX = 5;
/** A spreadsheet stores 15 digits of a number, and replaces further ones by 0. */
const ROUNDED_ID = /^-?[0-9]{15}0+$/;
/** An empty name, or one of invisible characters only. */
const BLANK_NAME = /^[\p{Z}\p{C}]*$/u;

/**
 * Prints the rows that an import would reject, and doubtful rows.
 *
 * @param idRule how the ids are made, of which it prints the first; undefined if the files have them
 * @returns the exit code
 */
export async function dryRun(
  files: string[],
  idRule: IdRule | undefined,
  reading: Omit<Reading, 'onNote' | 'ids'>,
): Promise<0 | 1> {
  // A file without a size is reported when it is read.
  const sizes = await Promise.all(files.map(file => plantFileSize(file).catch(() => undefined)));
  using progress = new CountedProgress('reading', 'bytes', totalSize(sizes));
  let rowCount = 0;
  const examples = { 'repeated id': 0, 'rounded id': 0, 'blank name': 0, 'line break': 0 };
  const counts = { ...examples, 'rejected row': 0, 'faulty file': 0 };
  const add = (kind: keyof typeof counts, place: () => string, text?: string): void => {
    if (++counts[kind] > EXAMPLES_MAX && kind in examples) return;
    const line = [kind, place(), text].filter(part => part !== undefined).join(': ');
    progress.say(line, console.log);
  };
  const ids = new Set<bigint>();
  const madeIds = idRule && new MadeIds(idRule);
  let shownIds = 0;
  const read = async (file: string): Promise<void> => {
    const onNote = (line: string): void => progress.say(line);
    const fileReading: Reading = {
      ...reading,
      ids: madeIds,
      onNote,
      onBytes: progress.add,
      onVerified: () => {},
    };
    for await (const rows of fileRows(file, fileReading))
      for (const row of rows) {
        const rowReading = row.reading;
        const place = (): string => `${fileName(file)} ${row.place()}`;
        rowCount++;
        if (rowReading.kind === 'invalid') add('rejected row', place, rowReading.message);
        else if (Buffer.byteLength(newPlantJson(rowReading.plant)) > BODY_BYTES_MAX)
          add('rejected row', place, ERRORS.bodyTooLarge.message);
        if (row.lineBreak !== undefined) add('line break', place, lineBreakText(row.lineBreak));
        if (rowReading.kind === 'invalid') continue;
        const { plant } = rowReading;
        const id = String(plant.id);
        if (madeIds !== undefined && shownIds++ < EXAMPLES_MAX)
          progress.say(`id: ${place()}: ${madeIdText(row)}`, console.log);
        if (madeIds === undefined && ROUNDED_ID.test(id))
          add('rounded id', place, `a spreadsheet may have changed digits of ${id}`);
        if (BLANK_NAME.test(plant.name)) add('blank name', place, quoted(plant.name));
        if (ids.has(plant.id)) add('repeated id', place, id);
        else if (ids.size < IDS_MAX) ids.add(plant.id);
      }
  };
  for (const file of files)
    await read(file).catch(error => {
      if (reading.stop.aborted) throw reading.stop.reason;
      if (!(error instanceof Failure)) throw error;
      add('faulty file', () => error.message);
    });
  const totals = Object.entries({ row: rowCount, 'distinct id': ids.size, ...counts });
  const partial = ids.size === IDS_MAX ? `; only ${formatCount(IDS_MAX)} ids were compared` : '';
  const counted = totals.map(([kind, count]) => amount(count, kind)).join(', ');
  progress.say(`${counted}${partial}; nothing was sent`, console.log);
  return counts['rejected row'] + counts['faulty file'] === 0 ? 0 : 1;
}

/** Makes a text such as `7597049000137840730 of "1998.0347.A"`. */
function madeIdText({ madeId, reading }: PlantRow): string {
  if (madeId?.kind !== 'id' || reading.kind !== 'plant') return '';
  const { id, texts } = madeId;
  return texts.length === 0
    ? `${id} for ${quoted(reading.plant.name)}`
    : `${id} of ${texts.map(quoted).join(' and ')}`;
}
