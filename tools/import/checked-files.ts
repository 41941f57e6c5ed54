import { CountedProgress } from '../../src/cli/shared/progress-display.ts';
import type { CsvForm } from './csv/csv-header.ts';
import { fileRows } from './plant-file.ts';
import { IdMaker, type IdRule } from './rows/id-maker.ts';
import { plantFileSize } from './text/file-bytes.ts';
import { checkRejectsPath, defaultRejectsPath } from './written/rejects-file.ts';

/** The files of an import, and how to read them. */
export interface FilesOptions {
  files: string[];
  form: CsvForm;
  /** The encoding of the files; undefined: UTF-8, or as a byte order mark says. */
  encoding: string | undefined;
  /** File for rejected rows; undefined: a name derived from each input file. */
  rejects: string | undefined;
}

/**
 * Checks all files before the first row is sent: a wrong header of the last file ends the import
 * before it stores the rows of the first one. A stream can be read only once, so it is not checked.
 *
 * @returns the size of each file; undefined for a stream
 * @throws {Failure} if a file cannot be used, or its rejected rows could not be written
 */
export async function checkFiles(
  { files, form, encoding, rejects }: FilesOptions,
  idRule: IdRule | undefined,
  stop: AbortSignal,
): Promise<(number | undefined)[]> {
  const sizes: (number | undefined)[] = [];
  for (const file of files) {
    const size = await plantFileSize(file);
    sizes.push(size);
    await checkRejectsPath(rejects ?? defaultRejectsPath(file, 'csv'), rejects !== undefined);
    if (size === undefined) continue;
    using progress = new CountedProgress(`verifying ${file}`, 'bytes', size);
    const reading = {
      form,
      encoding,
      ids: idRule && new IdMaker(idRule),
      stop,
      onNote: () => {},
      onVerified: progress.add,
    };
    for await (const rows of fileRows(file, reading)) if (rows.length > 0) break;
  }
  return sizes;
}
