/*
 * An import sends the plants of files to a service. A row goes through these stages:
 *
 * 1. `text`: bytes become text, after gzip and encoding.
 * 2. `plant-file.ts`: the start of the text shows its format.
 * 3. `csv` and `json`: text becomes rows, each with its plant or the reason why it has none.
 * 4. `rows`: what rows of all formats have; ids that are made.
 * 5. `sending`: plants are sent, some again, and their results counted.
 * 6. `rejects`: rows without a plant, or that the service rejects, are written with the reason. A
 *    corrected file is read there, too.
 * 7. `import-report.ts`: the counts, and the commands that come next.
 *
 * A dry run has stages 1 to 4. Then `dry-run.ts` compares the plants with the store.
 */
import { Failure } from '../../src/cli/shared/failure.ts';
import { CountedProgress } from '../../src/cli/shared/progress-display.ts';
import { ImportResult } from './import-result.ts';
import { verifyFile } from './plant-file.ts';
import { Progress } from './progress.ts';
import { checkRejectsPath } from './rejects/rejects-file.ts';
import { IdMaker, type IdRule, repeatedTextsOf } from './rows/id-maker.ts';
import { type SendingOptions, sendFiles } from './sending/send-files.ts';
import { plantFileSize, totalSize } from './text/file-bytes.ts';
import { IdsFile } from './written/ids-file.ts';

export interface ImportRunOptions extends SendingOptions {
  /** How the ids are made; undefined if the files have them. */
  idRule: IdRule | undefined;
  /** New file for the ids that are made. */
  idsFile: string | undefined;
}

/**
 * Sends every plant of the files to the service, file by file. If the import ends early, it waits
 * for the plants in flight and counts them.
 *
 * @throws {Failure} if a file cannot be used; then no plant was sent
 */
export async function importFiles(options: ImportRunOptions, stop: AbortSignal): Promise<ImportResult> {
  const { idRule, idsFile } = options;
  const ids = idRule && new IdMaker(idRule);
  let sizes: (number | undefined)[];
  let writtenIds: IdsFile | undefined;
  try {
    sizes = await checkFiles(options, ids, stop);
    if (idsFile !== undefined) writtenIds = new IdsFile(idsFile, ids!);
  } catch (error) {
    if (stop.aborted) throw stop.reason;
    throw error instanceof Failure
      ? new Failure(`${error.message}; nothing was sent`, error.exitCode)
      : error;
  }
  using _ = writtenIds;
  using progress = new Progress(totalSize(sizes));
  const result = new ImportResult(progress);
  await sendFiles(options, { ids, writtenIds }, stop, result);
  result.repeatedTexts = ids && repeatedTextsOf(ids);
  result.idsSummary = writtenIds?.summary(result.cause === undefined);
  return result;
}

/**
 * Checks all files before the first row is sent: a wrong header of the last file ends the import
 * before it stores the rows of the first one. A stream can be read only once, so it is not checked.
 *
 * @returns the size of each file; undefined for a stream
 * @throws {Failure} if a file cannot be used, or its rejected rows could not be written
 */
async function checkFiles(
  { files, form, rejects }: ImportRunOptions,
  ids: IdMaker | undefined,
  stop: AbortSignal,
): Promise<(number | undefined)[]> {
  const sizes: (number | undefined)[] = [];
  for (const file of files) {
    const size = await plantFileSize(file);
    sizes.push(size);
    await checkRejectsPath(file, rejects);
    if (size === undefined) continue;
    using progress = new CountedProgress(`verifying ${file}`, 'bytes', size);
    await verifyFile(file, { form, ids, stop, onNote: () => {} }, progress.add);
  }
  return sizes;
}
