import { PlantStore, PlantStoreError } from '../../client/plant-store.ts';
import { ERRORS, type ErrorBody } from '../../contract/errors.ts';
import type { NewPlant } from '../../contract/plant.ts';
import { Failure } from '../failure.ts';
import type { ServiceAddress } from '../service-options.ts';
import { csvRows } from './csv-rows.ts';
import { jsonArrayRows, jsonLinesRows } from './json-rows.ts';
import { IMPORT_RESPONSE_TIMEOUT_MS, OUTAGE_MAX_MS } from './limits.ts';
import { checkPlantFile, openPlantFile, type PlantFile, plantFileName } from './plant-file.ts';
import { type PlantRow, type PlantRows, ROWS_SENT } from './plant-row.ts';
import { Progress } from './progress.ts';
import { checkRejectsPath, defaultRejectsPath, RejectsFile } from './rejects-file.ts';
import { RetryRules } from './retry-rules.ts';
import { NotUtf8 } from './utf8-texts.ts';

export interface ImportSettings {
  /** Files in the order of the import; `-` is standard input. */
  files: string[];
  service: ServiceAddress;
  /** File for rejected rows; undefined: a name derived from each input file. */
  rejects: string | undefined;
  /** Largest number of plants in flight. */
  inFlightMax: number;
}

/**
 * Sends every plant of the files to the service, file by file. If the import ends early, it waits
 * for the plants in flight and counts them. The rejects files then contain every rejected row.
 *
 * @param stop ends the import; its reason becomes the cause
 * @throws {Failure} if a file cannot be used; then no plant was sent
 */
export async function importFiles(settings: ImportSettings, stop: AbortSignal): Promise<ImportRun> {
  const { files, rejects } = settings;
  /** Undefined if the size of one file is unknown. */
  let bytesTotal: number | undefined = 0;
  for (const file of files) {
    const size = await checkPlantFile(file);
    bytesTotal = size === undefined || bytesTotal === undefined ? undefined : bytesTotal + size;
    await checkRejectsPath(rejects ?? defaultRejectsPath(file, 'CSV'), rejects !== undefined);
  }
  const run = new ImportRun(settings, stop, bytesTotal);
  await run.run();
  return run;
}

export class ImportRun {
  readonly progress: Progress;
  readonly rejectsFiles: string[] = [];
  /** Reason of an early end: a Failure, or the reason of the stop signal. Otherwise undefined. */
  cause: unknown;
  readonly #settings: ImportSettings;
  /** Aborted by the caller, or by `#writeStop`. */
  readonly #stop: AbortSignal;
  /** Aborted when a rejected row cannot be written. */
  readonly #writeStop = new AbortController();
  readonly #retryRules: RetryRules;
  readonly #store: PlantStore;
  #rejects: RejectsFile | undefined;
  /** Number of the last row that was read from the current file. */
  #rowNumber = 0;

  constructor(settings: ImportSettings, stop: AbortSignal, bytesTotal: number | undefined) {
    this.#settings = settings;
    this.#stop = AbortSignal.any([stop, this.#writeStop.signal]);
    this.progress = new Progress(bytesTotal);
    this.#retryRules = new RetryRules(settings.service, line => this.progress.say(line));
    this.#store = new PlantStore({
      ...settings.service,
      ...{ responseTimeoutMs: IMPORT_RESPONSE_TIMEOUT_MS, retryForMs: OUTAGE_MAX_MS },
    });
  }

  async run(): Promise<void> {
    try {
      for (const file of this.#settings.files) await this.#importFile(file);
    } catch (error) {
      this.cause = this.#stop.aborted ? this.#stop.reason : error;
    } finally {
      this.#store.close();
      this.progress[Symbol.dispose]();
    }
  }

  async #importFile(path: string): Promise<void> {
    this.#rowNumber = 0;
    try {
      const file = await openPlantFile(path, this.#stop, bytes => this.progress.read(bytes));
      const { rejects = defaultRejectsPath(path, file.format) } = this.#settings;
      this.#rejects = new RejectsFile(rejects, this.#settings.rejects === undefined);
      await this.#sendRows(file);
    } catch (error) {
      if (error instanceof PlantStoreError) throw this.#retryRules.failure(error);
      if (!(error instanceof NotUtf8)) throw error;
      const name = plantFileName(path);
      if (error.isUtf16) {
        throw new Failure(
          `${name} is UTF-16; convert it first, for example with: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE`,
        );
      }
      throw new Failure(
        `${name} is not UTF-8 near row ${this.#rowNumber + 1}; ${ROWS_SENT}. Convert the file first, ` +
          'for example with: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW_FILE',
      );
    } finally {
      this.#rejects?.close();
      if (this.#rejects?.path !== undefined) this.rejectsFiles.push(this.#rejects.path);
      this.#rejects = undefined;
    }
  }

  async #sendRows(file: PlantFile): Promise<void> {
    const results = this.#store.createPlants(this.#plantsOf(file), {
      concurrency: this.#settings.inFlightMax,
      signal: this.#stop,
      onRetry: error => this.#retryRules.retried(error),
    });
    for await (const { plant, error, input } of results) {
      this.#retryRules.settled();
      if (error === undefined) this.progress.count(plant.outcome);
      else this.#reject(input.row, { error: error.error!, message: this.#retryRules.shown(error.message) });
    }
  }

  /** The valid plants of the file. Rows without a valid plant are rejected here and never sent. */
  async *#plantsOf(file: PlantFile): AsyncGenerator<NewPlant & { row: PlantRow }, void, undefined> {
    for await (const rows of this.#rowsOf(file)) {
      for (const [index, row] of rows.entries()) {
        this.#rowNumber = row.number;
        const { plant, error, message } = row.reading;
        if (plant === undefined) this.#reject(row, { error: ERRORS[error].number, message });
        else yield { ...plant, row };
        this.progress.sent(index + 1, rows.length);
      }
    }
  }

  #rowsOf({ name, format, texts }: PlantFile): PlantRows {
    if (format === 'CSV') return csvRows(name, texts, line => this.progress.say(line));
    return format === 'JSON array' ? jsonArrayRows(name, texts) : jsonLinesRows(name, texts);
  }

  #reject(row: PlantRow, fault: ErrorBody): void {
    try {
      this.#rejects?.write(row, fault);
      this.progress.count('rejected');
    } catch (error) {
      this.#writeStop.abort(error);
    }
  }
}
