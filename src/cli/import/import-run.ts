import { PlantChanged, PlantStore, PlantStoreError, type StoredPlant } from '../../client/plant-store.ts';
import { ERRORS, type ErrorBody } from '../../core/contract/errors.ts';
import type { NewPlant } from '../../core/contract/plant.ts';
import type { ServiceAddress } from '../options/service-options.ts';
import { Failure } from '../output/failure.ts';
import { CountedProgress } from '../output/progress-display.ts';
import type { CsvForm } from './csv/csv-header.ts';
import { fileRows, type PlantFileOptions } from './plant-file.ts';
import { Progress } from './progress.ts';
import { IdMaker, type IdRule } from './rows/id-maker.ts';
import { lineBreakText, type PlantRow, type PlantRows, SAFE_TO_REPEAT } from './rows/plant-row.ts';
import { pipelinedTransport } from './sending/pipelined-transport.ts';
import { type Replacement, ResponseWatch, type TimeBefore } from './sending/response-watch.ts';
import { IMPORT_RESPONSE_TIMEOUT_MS, OUTAGE_MAX_MS, RetryRules } from './sending/retry-rules.ts';
import { SlowStart } from './sending/slow-start.ts';
import { IDS_MAX } from './store-comparison.ts';
import { DamagedGzip, fileName, plantFileSize, totalSize } from './text/file-bytes.ts';
import { IdsFile } from './written/ids-file.ts';
import { checkRejectsPath, defaultRejectsPath, RejectsFile } from './written/rejects-file.ts';

const ROWS_SENT = `rows before it, if any, were sent, and ${SAFE_TO_REPEAT}`;
const ROWS_IN_DOUBT = 'rows that were sent can be wrong, so compare them with the new copy';

export interface ImportSettings {
  files: string[];
  form: CsvForm;
  /** The encoding of the files; undefined: UTF-8, or as a byte order mark says. */
  encoding: string | undefined;
  /** How the ids are made; undefined if the files have them. */
  idRule: IdRule | undefined;
  /** New file for the ids that are made. */
  idsFile: string | undefined;
  service: ServiceAddress;
  /** Whether rows replace other content that is stored under their ids. */
  replaces: boolean;
  /** File for rejected rows; undefined: a name derived from each input file. */
  rejects: string | undefined;
  inFlightMax: number;
}

export interface ImportResult {
  readonly progress: Progress;
  readonly rejectsFiles: string[];
  /** What a person needs to know of the file with the ids. */
  idsSummary: string | undefined;
  /** Rejected rows whose ids are stored with other content. */
  changed: number;
  timeBefore: TimeBefore;
  /** The files that were not opened. */
  unsent: readonly string[];
  /** A Failure or the reason of the stop signal, if the import ended early. */
  cause: unknown;
}

/**
 * Sends every plant of the files to the service, file by file. If the import ends early, it waits
 * for the plants in flight and counts them.
 *
 * @throws {Failure} if a file cannot be used; then no plant was sent
 */
export async function importFiles(settings: ImportSettings, stop: AbortSignal): Promise<ImportResult> {
  const { files, form, encoding, idRule, idsFile, rejects } = settings;
  const makeIds = (): IdMaker | undefined => idRule && new IdMaker(idRule);
  const ids = makeIds();
  let writtenIds: IdsFile | undefined;
  const sizes: (number | undefined)[] = [];
  try {
    for (const file of files) {
      const size = await plantFileSize(file);
      sizes.push(size);
      await checkRejectsPath(rejects ?? defaultRejectsPath(file, 'csv'), rejects !== undefined);
      if (size === undefined) continue;
      using progress = new CountedProgress(`verifying ${file}`, 'bytes', size);
      const reading: PlantFileOptions = {
        form,
        encoding,
        ids: makeIds(),
        stop,
        onNote: () => {},
        onVerified: progress.add,
      };
      for await (const rows of fileRows(file, reading)) if (rows.length > 0) break;
    }
    if (idsFile !== undefined) writtenIds = new IdsFile(idsFile, ids!);
  } catch (error) {
    if (stop.aborted) throw stop.reason;
    throw error instanceof Failure
      ? new Failure(`${error.message}; nothing was sent`, error.exitCode)
      : error;
  }
  using progress = new Progress(totalSize(sizes));
  using _ = writtenIds;
  const result: ImportResult = {
    progress,
    rejectsFiles: [],
    idsSummary: undefined,
    changed: 0,
    timeBefore: { kind: 'unknown' },
    unsent: [],
    cause: undefined,
  };
  await sendFiles(settings, { ids, writtenIds }, stop, result);
  result.idsSummary = writtenIds?.summary(result.cause === undefined);
  return result;
}

async function sendFiles(
  settings: ImportSettings,
  { ids, writtenIds }: { ids: IdMaker | undefined; writtenIds: IdsFile | undefined },
  callerStop: AbortSignal,
  result: ImportResult,
): Promise<void> {
  const { files, form, encoding, service, replaces, inFlightMax } = settings;
  const { progress } = result;
  /** Aborted when a rejected row cannot be written. */
  const writeStop = new AbortController();
  const stop = AbortSignal.any([callerStop, writeStop.signal]);
  const onNote = (line: string): void => progress.say(line);
  const rules = new RetryRules(service, onNote);
  using transport = pipelinedTransport(service.url, inFlightMax);
  const watch = new ResponseWatch(transport.send);
  const store = new PlantStore({
    ...service,
    transport: watch.send,
    responseTimeoutMs: IMPORT_RESPONSE_TIMEOUT_MS,
    retryForMs: OUTAGE_MAX_MS,
  });
  const earlierIds = new EarlierIds();
  let lastPlant: StoredPlant | undefined;
  const start = replaces ? undefined : new SlowStart(inFlightMax);
  const sendFile = async (path: string, rejects: RejectsFile): Promise<void> => {
    const reject = (row: PlantRow, fault: ErrorBody): void => {
      try {
        rejects.write(row, fault);
        progress.count('rejected');
      } catch (error) {
        writeStop.abort(error);
      }
    };
    const onBytes = (bytes: number): void => progress.read(bytes);
    const read = fileRows(path, { form, encoding, ids, stop, onNote, onBytes });
    const rows = withLineBreakNote(writtenIds?.written(read) ?? read, path, onNote);
    const plants = plantsOf(rows, progress, reject, start);
    const options = {
      concurrency: inFlightMax,
      signal: stop,
      ifRevision: replaces ? undefined : 0,
      onRetry: (error: PlantStoreError) => rules.retried(error),
    };
    for await (const { plant, error, input } of store.createPlants(plants, options)) {
      rules.settled();
      start?.settled();
      if (error === undefined) {
        progress.count(plant.outcome);
        lastPlant = plant;
        if (!replaces) earlierIds.add(plant.id);
      } else if (error instanceof PlantChanged) {
        result.changed++;
        reject(input.row, { error: error.error!, message: earlierIds.messageOf(input.id, error) });
      } else reject(input.row, { error: error.error!, message: rules.shown(error.message) });
    }
  };
  const failureOf = (error: PlantStoreError): Failure => {
    const first = replaces ? undefined : watch.firstReplacement;
    return first === undefined ? rules.failure(error) : ignoredHeader(first);
  };
  try {
    for (const [index, file] of files.entries()) {
      result.unsent = files.slice(index + 1);
      const rejects = new RejectsFile(file, settings.rejects);
      try {
        await sendFile(file, rejects);
      } finally {
        const written = rejects.close();
        if (written !== undefined) result.rejectsFiles.push(written);
      }
    }
    if (watch.replaced > 0 && lastPlant !== undefined) await watch.waitForNextSecond(store, lastPlant);
  } catch (error) {
    const reason = error instanceof PlantStoreError ? failureOf(error) : error;
    result.cause = stop.aborted ? stop.reason : reason;
  } finally {
    store.close();
    // The reader of the rows may wait for a result that never comes.
    start?.end();
    result.timeBefore = watch.timeBefore;
    // The client has thrown for these, so they were not counted.
    while (progress.rowCounts.revised < watch.replaced) progress.count('revised');
  }
}

function ignoredHeader({ id, revision }: Replacement): Failure {
  return new Failure(
    `plant ${id} was replaced by revision ${revision}, although import sends If-Plant-Revision: 0, so the import ended; ` +
      'the service, or a gateway in front of it, ignores this header: update the service, or make the gateway ' +
      'forward the header; --replace imports without it',
  );
}

/** The ids that earlier rows of the import have, to explain why a later row is rejected. */
class EarlierIds {
  readonly #ids = new Set<bigint>();

  add(id: bigint): void {
    if (this.#ids.size < IDS_MAX) this.#ids.add(id);
  }

  messageOf(id: bigint, { storedRevision }: PlantChanged): string {
    const message = `plant ${id} is stored with other content, revision ${storedRevision}`;
    return this.#ids.has(id) ? `${message}, which an earlier row of this import has` : message;
  }
}

/** Yields the same rows. It notes the first field with a line break, which may contain rows. */
async function* withLineBreakNote(
  batches: PlantRows,
  path: string,
  onNote: (line: string) => void,
): PlantRows {
  let isNoted = false;
  for await (const rows of batches) {
    const row: PlantRow | undefined = isNoted
      ? undefined
      : rows.find(({ lineBreak }) => lineBreak !== undefined);
    if (row !== undefined)
      onNote(
        `${fileName(path)} ${row.place()} has a line break: ${lineBreakText(row.lineBreak!)}; ` +
          'if a quote is not closed, the next rows are in this field; --dry-run lists such rows',
      );
    isNoted ||= row !== undefined;
    yield rows;
  }
}

/** Yields the valid plants of a file, and rejects its other rows, so that they are never sent. */
async function* plantsOf(
  batches: PlantRows,
  progress: Progress,
  reject: (row: PlantRow, fault: ErrorBody) => void,
  start: SlowStart | undefined,
): AsyncGenerator<NewPlant & { row: PlantRow }, void, undefined> {
  try {
    for await (const rows of batches) {
      for (const [index, row] of rows.entries()) {
        const { reading } = row;
        if (reading.kind === 'plant') {
          const wait = start?.next();
          if (wait !== undefined) await wait;
          yield { ...reading.plant, row };
        } else reject(row, { error: ERRORS[reading.error].number, message: reading.message });
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
