import { Failure } from '../../src/cli/shared/failure.ts';
import { checkFiles } from './checked-files.ts';
import type { ImportResult } from './import-result.ts';
import { Progress } from './progress.ts';
import { IdMaker, type IdRule, repeatedTextsOf } from './rows/id-maker.ts';
import { type SendingOptions, sendFiles } from './send-files.ts';
import { totalSize } from './text/file-bytes.ts';
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
    sizes = await checkFiles(options, idRule, stop);
    if (idsFile !== undefined) writtenIds = new IdsFile(idsFile, ids!);
  } catch (error) {
    if (stop.aborted) throw stop.reason;
    throw error instanceof Failure
      ? new Failure(`${error.message}; nothing was sent`, error.exitCode)
      : error;
  }
  using _ = writtenIds;
  using progress = new Progress(totalSize(sizes));
  const result: ImportResult = {
    progress,
    rejectsFiles: [],
    idsSummary: undefined,
    repeatedTexts: undefined,
    lastPlant: undefined,
    changed: 0,
    repeated: 0,
    mayHaveReplaced: false,
    timeBefore: undefined,
    unsent: [],
    cause: undefined,
  };
  await sendFiles(options, { ids, writtenIds }, stop, result);
  result.repeatedTexts = ids && repeatedTextsOf(ids);
  result.idsSummary = writtenIds?.summary(result.cause === undefined);
  return result;
}
