import { pipelinedTransport } from '../../src/cli/shared/pipelined-transport.ts';
import type { ServiceAddress } from '../../src/cli/shared/service-options.ts';
import { PlantChanged, PlantStore, PlantStoreError } from '../../src/client/plant-store.ts';
import type { ErrorBody } from '../../src/core/contract/errors.ts';
import type { CsvForm } from './csv/csv-header.ts';
import type { ImportResult } from './import-result.ts';
import { fileRows } from './plant-file.ts';
import { RejectsFile } from './rejects/rejects-file.ts';
import { EarlierIds, FirstContents } from './remembered-ids.ts';
import type { IdMaker } from './rows/id-maker.ts';
import type { PlantRow } from './rows/plant-row.ts';
import { IMPORT_RESPONSE_TIMEOUT_MS, OUTAGE_MAX_MS, RetryRules } from './sending/retry-rules.ts';
import { ignoredHeader, RowTransport } from './sending/row-transport.ts';
import { plantsOf, type SentPlant, withLineBreakNote } from './sent-plants.ts';
import type { IdsFile } from './written/ids-file.ts';

/** The files of an import, how to read them, and the service. */
export interface SendingOptions {
  files: string[];
  form: CsvForm;
  /** The encoding of the files; undefined: UTF-8, or as a byte order mark says. */
  encoding: string | undefined;
  /** File for rejected rows; undefined: a name derived from each input file. */
  rejects: string | undefined;
  service: ServiceAddress;
  /** Whether rows replace other content that is stored under their ids. */
  replaces: boolean;
  inFlightMax: number;
}

/** What makes the ids, and where they are written. Both are undefined if the files have ids. */
interface MadeIdsParts {
  ids: IdMaker | undefined;
  writtenIds: IdsFile | undefined;
}

/** Sends the plants of the files, file by file, and enters into the result what became of them. */
export async function sendFiles(
  options: SendingOptions,
  ids: MadeIdsParts,
  stop: AbortSignal,
  result: ImportResult,
): Promise<void> {
  const { files } = options;
  using sender = new FileSender(options, ids, stop, result);
  try {
    for (const [index, file] of files.entries()) {
      result.unsent = files.slice(index + 1);
      await sender.send(file);
    }
  } catch (error) {
    result.cause = sender.causeOf(error);
  }
}

/** The connection to the service, and what several files share. */
class FileSender implements Disposable {
  readonly #options: SendingOptions;
  readonly #ids: MadeIdsParts;
  readonly #result: ImportResult;
  /** Aborted when a rejected row cannot be written. */
  readonly #writeStop = new AbortController();
  readonly #stop: AbortSignal;
  readonly #rules: RetryRules;
  readonly #transport: ReturnType<typeof pipelinedTransport>;
  readonly #rows: RowTransport;
  readonly #store: PlantStore;
  /** Of rows that are stored. */
  readonly #earlierIds = new EarlierIds();
  readonly #rejectedContents = new FirstContents();

  constructor(options: SendingOptions, ids: MadeIdsParts, stop: AbortSignal, result: ImportResult) {
    const { service, replaces, inFlightMax } = options;
    this.#options = options;
    this.#ids = ids;
    this.#result = result;
    this.#stop = AbortSignal.any([stop, this.#writeStop.signal]);
    this.#rules = new RetryRules(service, this.#note);
    this.#transport = pipelinedTransport(service.url, inFlightMax);
    this.#rows = new RowTransport(this.#transport.send, replaces);
    this.#store = new PlantStore({
      ...service,
      transport: this.#rows.send,
      responseTimeoutMs: IMPORT_RESPONSE_TIMEOUT_MS,
      retryForMs: OUTAGE_MAX_MS,
    });
  }

  async send(file: string): Promise<void> {
    using rejects = new RejectsFile(file, this.#options.rejects);
    try {
      await this.#sendRows(file, rejects);
    } finally {
      if (rejects.path !== undefined) this.#result.rejectsFiles.push(rejects.path);
    }
  }

  /** @param error what ended the import. @returns what to report */
  causeOf(error: unknown): unknown {
    if (this.#stop.aborted) return this.#stop.reason;
    if (!(error instanceof PlantStoreError)) return error;
    const first = this.#options.replaces ? undefined : this.#rows.firstReplacement;
    if (first === undefined) return this.#rules.failure(error);
    const { id, revision } = first;
    return ignoredHeader(
      `plant ${id} was replaced by revision ${revision}, although import sends If-Plant-Revision: 0`,
    );
  }

  /** Ends the connection, and enters into the result what the responses have shown. */
  [Symbol.dispose](): void {
    const { progress } = this.#result;
    this.#result.timeBefore = this.#rows.timeBefore;
    this.#result.mayHaveReplaced = this.#mayHaveReplaced;
    // The client has thrown for these, so they were not counted.
    while (progress.rowCounts.revised < this.#rows.replaced) progress.count('revised');
    this.#store.close();
    this.#transport[Symbol.dispose]();
  }

  readonly #note = (line: string): void => this.#result.progress.say(line);

  get #mayHaveReplaced(): boolean {
    return this.#options.replaces && this.#rows.hasLostResponses;
  }

  async #sendRows(file: string, rejects: RejectsFile): Promise<void> {
    const { progress } = this.#result;
    const { form, encoding, replaces, inFlightMax } = this.#options;
    const { ids, writtenIds } = this.#ids;
    const reject = (row: PlantRow, fault: ErrorBody): void => {
      try {
        rejects.write(row, fault);
        progress.count('rejected');
      } catch (error) {
        this.#writeStop.abort(error);
      }
    };
    const onBytes = (bytes: number): void => progress.read(bytes);
    const read = fileRows(file, { form, encoding, ids, stop: this.#stop, onNote: this.#note, onBytes });
    const rows = withLineBreakNote(writtenIds?.written(read) ?? read, file, this.#note);
    const results = this.#store.createPlants<SentPlant>(plantsOf(rows, progress, reject), {
      concurrency: inFlightMax,
      signal: this.#stop,
      ifRevision: replaces ? undefined : 0,
      onRetry: error => this.#rules.retried(error),
    });
    for await (const { plant, error, input } of results) {
      this.#rules.settled();
      if (error === undefined) {
        progress.count(plant.outcome);
        this.#result.lastPlant = plant;
        if (!replaces) this.#earlierIds.add(plant.id);
      } else if (error instanceof PlantChanged) {
        const isRepeated = this.#earlierIds.has(input.id) || this.#rejectedContents.isOther(input);
        this.#result[isRepeated ? 'repeated' : 'changed']++;
        reject(input.row, { error: error.error!, message: changedMessage(input.id, error, isRepeated) });
      } else reject(input.row, { error: error.error!, message: this.#rules.shown(error.message) });
    }
  }
}

/** @param isRepeated whether an earlier row of the import has the id, with other content */
function changedMessage(id: bigint, { storedRevision }: PlantChanged, isRepeated: boolean): string {
  const message = `plant ${id} is stored with other content, revision ${storedRevision}`;
  return isRepeated ? `${message}; an earlier row of this import has its id, too` : message;
}
