import { Failure } from '../../src/cli/shared/failure.ts';
import { CountedProgress } from '../../src/cli/shared/progress-display.ts';
import { ERRORS } from '../../src/core/contract/errors.ts';
import { BODY_MAX_BYTES } from '../../src/core/contract/limits.ts';
import { type NewPlant, newPlantJson } from '../../src/core/contract/plant.ts';
import type { PlantReader } from '../../src/engines/plant-reader.ts';
import { amount, formatCount } from '../../src/formats/number-text.ts';
import { quoted } from '../../src/formats/visible-text.ts';
import { fileRows, type PlantFileOptions, verifyFile } from './plant-file.ts';
import { countsText } from './progress.ts';
import { EarlierIds, FirstContents, IDS_MAX } from './remembered-ids.ts';
import { ambiguousTextsText, IdMaker, type IdRule, repeatedTextsOf } from './rows/id-maker.ts';
import type { PlantRow, PlantRows } from './rows/plant-row.ts';
import type { ComparedStore } from './service-store.ts';
import { StoreComparison } from './store-comparison.ts';
import { fileName, plantFileSize, totalSize } from './text/file-bytes.ts';
import { changeText, otherContentText, REPLACED_SHOWN_MAX, ReplacedList } from './written/replaced-list.ts';

/** Maximum of lines about each kind of doubtful row. Rejected rows have no maximum. */
const EXAMPLES_MAX = 5;
/** A spreadsheet stores 15 digits of a number, and replaces further ones by 0. */
const ROUNDED_ID = /^-?[0-9]{15}0+$/;
/** An empty name, or one of invisible characters only. */
const BLANK_NAME = /^[\p{Z}\p{C}]*$/u;

const DOUBTS = ['repeated id', 'rounded id', 'blank name', 'line break'] as const;
/** What is counted in the last line. */
const COUNTED = [...DOUBTS, 'rejected row', 'faulty file'] as const;

export interface DryRunOptions {
  files: string[];
  reading: Omit<PlantFileOptions, 'onNote' | 'ids'>;
  /** How the ids are made, of which the first are printed; undefined if the files have them. */
  idRule: IdRule | undefined;
  store: ComparedStore;
  /** Whether the import replaces stored content. */
  replaces: boolean;
  /** New file for all rows with other content than the store. */
  showReplaced: string | undefined;
}

/**
 * Prints what an import does: the rows that it rejects, doubtful rows, and those with other content
 * than the store.
 *
 * @returns the exit code: 1 if the import rejects a row or a file
 */
export async function dryRun(options: DryRunOptions): Promise<0 | 1> {
  const { files, store, showReplaced } = options;
  // A file without a size is reported when it is read.
  const sizes = await Promise.all(files.map(file => plantFileSize(file).catch(() => undefined)));
  using list = showReplaced === undefined ? undefined : new ReplacedList(showReplaced);
  using progress = new CountedProgress('reading', 'bytes', totalSize(sizes));
  const run = new DryRun(options, progress, list);
  for (const file of files) await run.read(file);
  return await run.report(store);
}

class DryRun {
  readonly #options: DryRunOptions;
  readonly #progress: CountedProgress;
  readonly #list: ReplacedList | undefined;
  readonly #comparison: StoreComparison | undefined;
  readonly #madeIds: IdMaker | undefined;
  readonly #counts = Object.fromEntries(COUNTED.map(kind => [kind, 0])) as Record<
    (typeof COUNTED)[number],
    number
  >;
  /** What the import would count. */
  readonly #effects = { created: 0, unchanged: 0, revised: 0, rejected: 0 };
  readonly #ids = new EarlierIds();
  #rowCount = 0;
  #shownIds = 0;
  /** Set if the ids are made of texts. */
  readonly #firstContents: FirstContents | undefined;
  /** Rows with other content than the store, without ambiguous ones. */
  #changedCount = 0;
  /** Rows with the text of an earlier row, and other content. */
  #ambiguousCount = 0;
  #shownChanges = 0;

  constructor(options: DryRunOptions, progress: CountedProgress, list: ReplacedList | undefined) {
    const { store, replaces, idRule } = options;
    this.#options = options;
    this.#progress = progress;
    this.#list = list;
    this.#comparison = store.kind === 'store' ? new StoreComparison(store.reader, replaces) : undefined;
    this.#madeIds = idRule && new IdMaker(idRule);
    this.#firstContents = idRule?.kind === 'texts' ? new FirstContents() : undefined;
  }

  async read(file: string): Promise<void> {
    for await (const rows of this.#rowsOf(file)) {
      await this.#comparison?.read(rows.map(plantOf).filter(plant => plant !== undefined));
      for (const row of rows) this.#addRow(row, () => `${fileName(file)} ${row.place()}`);
    }
  }

  /** The rows of a file to its end, or to a fault, which is counted. */
  async *#rowsOf(file: string): PlantRows {
    const options: PlantFileOptions = {
      ...this.#options.reading,
      ids: this.#madeIds,
      onNote: line => this.#progress.say(line),
      onBytes: this.#progress.add,
    };
    try {
      await verifyFile(file, options);
      yield* fileRows(file, options);
    } catch (error) {
      options.stop.throwIfAborted();
      if (!(error instanceof Failure)) throw error;
      this.#add('faulty file', () => error.message);
    }
  }

  /** Prints the counts. @returns the exit code */
  async report(store: ComparedStore): Promise<0 | 1> {
    const rejected = this.#counts['rejected row'] + this.#effects.rejected;
    const faulty = this.#counts['faulty file'];
    if (store.kind === 'none')
      this.#print(
        `not compared with a store: ${store.why}; to compare, name the store of the service, if this machine can read it, with --database`,
      );
    else {
      const would =
        faulty === 0
          ? 'import would make'
          : 'import would end at the first faulty file; otherwise it would make';
      const counts = countsText({ ...this.#effects, rejected });
      const name = store.doubt === undefined ? store.name : `${store.name}, which ${store.doubt}`;
      this.#print(`compared with the store ${name}: ${would} ${counts}`);
      await this.#reportNoneStored(store.reader);
    }
    if (this.#changedCount > 0) this.#print(this.#changedText());
    const repeated = this.#madeIds && repeatedTextsOf(this.#madeIds);
    if (repeated !== undefined) this.#print(repeated);
    if (this.#ambiguousCount > 0)
      this.#print(ambiguousTextsText(this.#ambiguousCount, this.#madeIds!.columns));
    const totals = Object.entries({
      row: this.#rowCount,
      'distinct id': this.#ids.size,
      ...this.#counts,
      'rejected row': rejected,
    });
    const partial = this.#ids.isFull ? `; only ${formatCount(IDS_MAX)} ids of the files were compared` : '';
    const counted = totals.map(([kind, count]) => amount(count, kind)).join(', ');
    const uncompared = store.kind === 'none' ? '; not compared with a store' : '';
    this.#print(`${counted}${partial}${uncompared}; nothing was sent`);
    return rejected + faulty === 0 ? 0 : 1;
  }

  /** A list for another store can have only new ids, so that nothing is rejected. */
  async #reportNoneStored(reader: PlantReader): Promise<void> {
    if (this.#ids.size === 0 || this.#comparison!.hasFoundPlants) return;
    const { plants } = await reader.size();
    if (plants > 0) this.#print(`no id of the list is in the store, which has ${amount(plants, 'plant')}`);
  }

  #print(line: string): void {
    this.#progress.say(line, console.log);
  }

  #changedText(): string {
    const { replaces, showReplaced } = this.#options;
    const count = this.#changedCount;
    const effect = replaces
      ? 'import --replace replaces the stored content'
      : `import rejects ${count === 1 ? 'this row' : 'these rows'}, and import --replace replaces the stored content`;
    const isAllShown = showReplaced !== undefined || this.#shownChanges <= REPLACED_SHOWN_MAX;
    return `${otherContentText(count)}: ${effect}${isAllShown ? '' : '; see all with --show-replaced FILE'}`;
  }

  #addRow(row: PlantRow, place: () => string): void {
    this.#rowCount++;
    const { reading } = row;
    if (reading.kind === 'invalid') this.#add('rejected row', place, reading.message);
    else if (isTooLarge(reading.plant)) this.#add('rejected row', place, ERRORS.bodyTooLarge.message);
    else {
      const isAmbiguous = this.#firstContents?.note(reading.plant) === 'other';
      if (isAmbiguous) this.#ambiguousCount++;
      this.#compare(reading.plant, isAmbiguous, place);
    }
    if (row.lineBreak !== undefined) this.#add('line break', place, row.lineBreak);
    if (reading.kind === 'plant') this.#addDoubts(row, reading.plant, place);
  }

  #compare(plant: NewPlant, isAmbiguous: boolean, place: () => string): void {
    const effect = this.#comparison?.effectOf(plant);
    switch (effect?.kind) {
      case undefined:
        return;
      case 'created':
      case 'unchanged':
        this.#effects[effect.kind]++;
        return;
      case 'damaged':
        this.#add('rejected row', place, ERRORS.damaged.message);
        return;
      case 'changed':
      case 'changed by list': {
        const stored = effect.kind === 'changed' ? effect.stored : undefined;
        this.#effects[this.#options.replaces ? 'revised' : 'rejected']++;
        this.#list?.add(stored, plant);
        if (!isAmbiguous) this.#changedCount++;
        if (++this.#shownChanges <= REPLACED_SHOWN_MAX)
          this.#print(`other content: ${place()}: ${changeText(stored, plant)}`);
      }
    }
  }

  #addDoubts(row: PlantRow, plant: NewPlant, place: () => string): void {
    const id = String(plant.id);
    if (this.#madeIds === undefined) {
      if (ROUNDED_ID.test(id))
        this.#add('rounded id', place, `a spreadsheet may have changed digits of ${id}`);
    } else if (this.#shownIds++ < EXAMPLES_MAX) this.#print(`id: ${place()}: ${madeIdText(row)}`);
    if (BLANK_NAME.test(plant.name)) this.#add('blank name', place, quoted(plant.name));
    if (this.#ids.has(plant.id)) this.#add('repeated id', place, id);
    else this.#ids.add(plant.id);
  }

  #add(kind: (typeof COUNTED)[number], place: () => string, text?: string): void {
    const isDoubt = (DOUBTS as readonly string[]).includes(kind);
    if (++this.#counts[kind] > EXAMPLES_MAX && isDoubt) return;
    const line = [kind, place(), text].filter(part => part !== undefined).join(': ');
    this.#print(line);
  }
}

function plantOf({ reading }: PlantRow): NewPlant | undefined {
  return reading.kind === 'plant' ? reading.plant : undefined;
}

function isTooLarge(plant: NewPlant): boolean {
  return Buffer.byteLength(newPlantJson(plant)) > BODY_MAX_BYTES;
}

/** Makes a text such as `7597049000137840730 of "1998.0347.A"`. */
function madeIdText({ madeId, reading }: PlantRow): string {
  if (madeId?.kind !== 'id' || reading.kind !== 'plant') return '';
  const { id, texts } = madeId;
  return texts.length === 0
    ? `${id} for ${quoted(reading.plant.name)}`
    : `${id} of ${texts.map(quoted).join(' and ')}`;
}
