import { Failure } from '../../../src/cli/shared/failure.ts';
import { pipelinedTransport } from '../../../src/cli/shared/pipelined-transport.ts';
import type { ServiceAddress } from '../../../src/cli/shared/service-options.ts';
import { PlantChanged, PlantStore, PlantStoreError } from '../../../src/client/plant-store.ts';
import { ERRORS, type ErrorBody } from '../../../src/core/contract/errors.ts';
import type { NewPlant } from '../../../src/core/contract/plant.ts';
import type { ImportResult } from '../import-result.ts';
import { fileRows } from '../plant-file.ts';
import { RejectsFile } from '../rejects/rejects-file.ts';
import { EarlierIds, FirstContents } from '../remembered-ids.ts';
import type { IdMaker } from '../rows/id-maker.ts';
import { type FileForm, type PlantRow, SAFE_TO_REPEAT } from '../rows/plant-row.ts';
import { DamagedGzip, fileName } from '../text/file-bytes.ts';
import type { IdsFile } from '../written/ids-file.ts';
import { IMPORT_RESPONSE_TIMEOUT_MS, OUTAGE_MAX_MS, RetryRules } from './retry-rules.ts';
import { ignoredHeader, RowTransport } from './row-transport.ts';

/** What the message about a fault of a file says of the rows before it. */
const ROWS_SENT = `rows before it, if any, were sent, and ${SAFE_TO_REPEAT}`;
const ROWS_IN_DOUBT = 'rows that were sent can be wrong, so compare them with the new copy';

/** The files of an import, how to read them, and the service. */
export interface SendingOptions {
  files: string[];
  form: FileForm;
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

/** A plant to send, and the row that has it. */
type SentPlant = NewPlant & { row: PlantRow };

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
    this.#result.mayHaveReplaced = this.#options.replaces && this.#rows.hasLostResponses;
    // The client has thrown for these, so they were not counted.
    while (progress.rowCounts.revised < this.#rows.replaced) progress.count('revised');
    this.#store.close();
    this.#transport[Symbol.dispose]();
  }

  readonly #note = (line: string): void => this.#result.progress.say(line);

  async #sendRows(file: string, rejects: RejectsFile): Promise<void> {
    const { progress } = this.#result;
    const { replaces, inFlightMax } = this.#options;
    const reject = (row: PlantRow, fault: ErrorBody): void => {
      try {
        rejects.write(row, fault);
        progress.count('rejected');
      } catch (error) {
        this.#writeStop.abort(error);
      }
    };
    const results = this.#store.createPlants<SentPlant>(this.#plantsOf(file, reject), {
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
        const isRepeated = this.#earlierIds.has(input.id) || this.#rejectedContents.note(input) === 'other';
        this.#result[isRepeated ? 'repeated' : 'changed']++;
        reject(input.row, { error: error.error!, message: changedMessage(input.id, error, isRepeated) });
      } else reject(input.row, { error: error.error!, message: this.#rules.shown(error.message) });
    }
  }

  /** Yields the valid plants of a file, and rejects its other rows, so that they are never sent. */
  async *#plantsOf(
    file: string,
    reject: (row: PlantRow, fault: ErrorBody) => void,
  ): AsyncGenerator<SentPlant, void, undefined> {
    const { progress } = this.#result;
    const { ids, writtenIds } = this.#ids;
    const { form } = this.#options;
    const onBytes = (bytes: number): void => progress.read(bytes);
    let hasLineBreak = false;
    try {
      for await (const rows of fileRows(file, { form, ids, stop: this.#stop, onNote: this.#note, onBytes })) {
        writtenIds?.add(rows);
        for (const [index, row] of rows.entries()) {
          if (row.lineBreak !== undefined && !hasLineBreak) this.#note(lineBreakNote(file, row));
          hasLineBreak ||= row.lineBreak !== undefined;
          const { reading } = row;
          if (reading.kind === 'plant') yield { ...reading.plant, row };
          else reject(row, { error: ERRORS[reading.error].number, message: reading.message });
          progress.sent(rows.length - index);
        }
        // A file can have many lines without rows.
        if (rows.length === 0) progress.sent(1);
      }
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const sent = error instanceof DamagedGzip ? ROWS_IN_DOUBT : ROWS_SENT;
      throw new Failure(`${error.message}; ${sent}`, error.exitCode);
    }
  }
}

/** The line about the first field with a line break, which may contain rows. */
function lineBreakNote(file: string, { place, lineBreak }: PlantRow): string {
  return (
    `${fileName(file)} ${place()} has a line break: ${lineBreak}; ` +
    'if a quote is not closed, the next rows are in this field; --dry-run lists such rows'
  );
}

/** @param isRepeated whether an earlier row of the import has the id, with other content */
function changedMessage(id: bigint, { storedRevision }: PlantChanged, isRepeated: boolean): string {
  const message = `plant ${id} is stored with other content, revision ${storedRevision}`;
  return isRepeated ? `${message}; an earlier row of this import has its id, too` : message;
}
