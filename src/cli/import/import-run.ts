import { PlantStore, PlantStoreError } from '../../client/plant-store.ts';
import { ERRORS, type ErrorBody } from '../../contract/errors.ts';
import type { NewPlant } from '../../contract/plant.ts';
import type { ServiceAddress } from '../options/service-options.ts';
import { Failure } from '../output/failure.ts';
import { CountedProgress } from '../output/progress-display.ts';
import type { CsvForm } from './csv-rows.ts';
import { IMPORT_RESPONSE_TIMEOUT_MS, OUTAGE_MAX_MS } from './limits.ts';
import { PipelinedTransport } from './pipelined-transport.ts';
import { DamagedGzip, fileRows, plantFileSize } from './plant-file.ts';
import { type PlantRow, type PlantRows, ROWS_IN_DOUBT, ROWS_SENT } from './plant-row.ts';
import { Progress } from './progress.ts';
import { checkRejectsPath, defaultRejectsPath, RejectsFile } from './rejects-file.ts';
import { RetryRules } from './retry-rules.ts';

export interface ImportSettings {
  /** Files in the order of the import; `-` is standard input. */
  files: string[];
  form: CsvForm;
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
  const { files, form, rejects } = settings;
  /** NaN if the size of one file is unknown. */
  let bytesTotal = 0;
  try {
    for (const file of files) {
      const size = await plantFileSize(file);
      bytesTotal += size ?? NaN;
      await checkRejectsPath(rejects ?? defaultRejectsPath(file, 'csv'), rejects !== undefined);
      if (size === undefined) continue;
      using progress = new CountedProgress(`verifying ${file}`, 'bytes', size);
      const onVerified = (bytes: number): void => {
        progress.done += bytes;
      };
      for await (const _ of fileRows(file, { form, stop, onNote: () => {}, onVerified })) break;
    }
  } catch (error) {
    if (stop.aborted) throw stop.reason;
    throw error instanceof Failure ? new Failure(`${error.message}; nothing was sent`) : error;
  }
  const run = new ImportRun(settings, stop, bytesTotal);
  await run.run();
  return run;
}

export class ImportRun {
  readonly progress: Progress;
  readonly rejectsFiles: string[] = [];
  /** The files that were not opened. */
  unsent: readonly string[] = [];
  /** Reason of an early end: a Failure, or the reason of the stop signal. Otherwise undefined. */
  cause: unknown;
  readonly #settings: ImportSettings;
  /** Aborted by the caller, or by `#writeStop`. */
  readonly #stop: AbortSignal;
  /** Aborted when a rejected row cannot be written. */
  readonly #writeStop = new AbortController();
  readonly #retryRules: RetryRules;
  readonly #transport: PipelinedTransport;
  readonly #store: PlantStore;
  #rejects: RejectsFile | undefined;

  constructor(settings: ImportSettings, stop: AbortSignal, bytesTotal: number) {
    this.#settings = settings;
    this.#stop = AbortSignal.any([stop, this.#writeStop.signal]);
    this.progress = new Progress(bytesTotal);
    this.#retryRules = new RetryRules(settings.service, line => this.progress.say(line));
    const { service, inFlightMax } = settings;
    this.#transport = new PipelinedTransport(service.url, inFlightMax);
    this.#store = new PlantStore({
      ...service,
      transport: this.#transport.send,
      ...{ responseTimeoutMs: IMPORT_RESPONSE_TIMEOUT_MS, retryForMs: OUTAGE_MAX_MS },
    });
  }

  async run(): Promise<void> {
    const { files } = this.#settings;
    try {
      for (const [index, file] of files.entries()) {
        this.unsent = files.slice(index + 1);
        await this.#importFile(file);
      }
    } catch (error) {
      this.cause = this.#stop.aborted ? this.#stop.reason : error;
    } finally {
      this.#store.close();
      this.#transport[Symbol.dispose]();
      this.progress[Symbol.dispose]();
    }
  }

  async #importFile(path: string): Promise<void> {
    this.#rejects = new RejectsFile(path, this.#settings.rejects);
    try {
      const onNote = (line: string): void => this.progress.say(line);
      const onBytes = (bytes: number): void => this.progress.read(bytes);
      await this.#sendRows(fileRows(path, { form: this.#settings.form, stop: this.#stop, onNote, onBytes }));
    } catch (error) {
      throw error instanceof PlantStoreError ? this.#retryRules.failure(error) : error;
    } finally {
      this.#rejects.close();
      if (this.#rejects.path !== undefined) this.rejectsFiles.push(this.#rejects.path);
    }
  }

  async #sendRows(rows: PlantRows): Promise<void> {
    const results = this.#store.createPlants(this.#plantsOf(rows), {
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
  async *#plantsOf(batches: PlantRows): AsyncGenerator<NewPlant & { row: PlantRow }, void, undefined> {
    try {
      for await (const rows of batches) {
        for (const [index, row] of rows.entries()) {
          const { plant, error, message } = row.reading;
          if (plant === undefined) this.#reject(row, { error: ERRORS[error].number, message });
          else yield { ...plant, row };
          this.progress.sent(index + 1, rows.length);
        }
      }
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(`${error.message}; ${error instanceof DamagedGzip ? ROWS_IN_DOUBT : ROWS_SENT}`);
    }
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
