import { lstatSync } from 'node:fs';
import type { StoredPlant } from '../client/plant-store.ts';
import { Interruption } from '../command-line/interruption.ts';
import { amount } from '../formats/number-text.ts';
import { visible } from '../formats/visible-text.ts';
import { areNewInDoubt, type ImportResult } from './import-result.ts';
import { SAFE_TO_REPEAT } from './rows/plant-row.ts';
import type { ServiceStore } from './service-store.ts';
import { numberedPaths } from './written/numbered-paths.ts';
import { otherContentText } from './written/replaced-list.ts';

/** Options of the commands that are printed. */
export interface NextOptions {
  /** The service to which the plants were sent. */
  url: URL;
  /** The address and the token file, if they were given. */
  service: string[];
  /** How the ids of the rejects files are made. */
  made: string[];
  findStore(lastPlant: StoredPlant | undefined): Promise<ServiceStore>;
}

/**
 * Prints the result of an import, and the commands that come next.
 *
 * @returns the exit code
 * @throws the reason if the import ended early
 */
export async function report(result: ImportResult, next: NextOptions): Promise<number> {
  const { progress, idsSummary, repeatedTexts, unsent, cause } = result;
  const { rowCounts } = progress;
  if (cause === undefined || progress.done > 0) console.log(progress.summary());
  if (idsSummary !== undefined) console.log(idsSummary);
  if (repeatedTexts !== undefined) console.log(repeatedTexts);
  if (rowCounts.rejected > 0) reportRejected(result, next);
  if (areNewInDoubt(result)) await reportNew(result, next);
  if (isUndoOffered(result)) await reportUndo(result, next);
  if (cause !== undefined && unsent.length > 0) console.error(`not sent: ${visible(unsent.join(' '))}`);
  if (cause instanceof Interruption) {
    console.error(`plant-store: stopped; confirmed plants are stored, and ${SAFE_TO_REPEAT}`);
    return cause.exitCode;
  }
  if (cause !== undefined) throw cause;
  return rowCounts.rejected === 0 ? 0 : 1;
}

/** Says where the rejected rows are, and which command stores them. */
function reportRejected(
  { progress, rejectsFiles, changed, cause }: ImportResult,
  { service, made }: NextOptions,
): void {
  const { rejected } = progress.rowCounts;
  const files = words(rejectsFiles);
  const where = `${amount(rejected, 'rejected row')} ${rejected === 1 ? 'is' : 'are'} in ${files}, with the reasons`;
  if (cause !== undefined) {
    console.log(`${where}; not all rows were sent, so correct and import the original`);
    return;
  }
  const importAgain = (...options: string[]): string =>
    `npx plant-store import ${words([...options, ...service, ...made, ...rejectsFiles])}`;
  const invalid = rejected - changed;
  if (changed === 0) {
    console.log(`${where}; correct and import again: ${importAgain()}`);
    return;
  }
  console.log(where);
  if (invalid > 0) console.log(`correct ${amount(invalid, 'row')}, and import again: ${importAgain()}`);
  console.log(
    `${otherContentText(changed)}; if ${changed === 1 ? 'the row is' : 'the rows are'} right, replace it: ${importAgain('--replace')}`,
  );
}

/**
 * Without a lost response, each replaced row was counted. The repeated request of a row whose
 * response was lost is `unchanged`, also if the first one has replaced content.
 */
function isUndoOffered({ progress, mayHaveReplaced, cause }: ImportResult): boolean {
  const { unchanged, revised } = progress.rowCounts;
  const isHidden = unchanged > 0 || (cause !== undefined && progress.done > 0);
  return revised > 0 || (mayHaveReplaced && isHidden);
}

/** Says how to set replaced plants back. Others may have changed plants meanwhile: two commands. */
async function reportUndo(result: ImportResult, next: NextOptions): Promise<void> {
  const { progress, mayHaveReplaced } = result;
  const { revised } = progress.rowCounts;
  const certain = revised === 0 ? [] : [`${amount(revised, 'row')} replaced`];
  const lost = mayHaveReplaced ? ['rows of a failed request may have replaced'] : [];
  const start = `to undo what ${[...certain, ...lost].join(', and what ')}, `;
  const before = await storeBefore(result, next, 'earlier');
  if (before === undefined) {
    console.log(
      `${start}see docs/operate/corrections.md; no response had a time, so choose one before the import`,
    );
    return;
  }
  const { where, database, at, file } = before;
  console.log(
    `${start}${where}: npx plant-store export ${words([...database, '--at', at, '--changed'])} > ${file}`,
  );
  console.log(
    `delete the rows of ${file} that others have changed since, then run: ` +
      `npx plant-store import --replace ${words([...next.service, file])}`,
  );
}

/** Says how to find the new plants if the store is the wrong one. */
async function reportNew(result: ImportResult, next: NextOptions): Promise<void> {
  const { created } = result.progress.rowCounts;
  const start = `${amount(created, 'new plant')} ${created === 1 ? 'was' : 'were'} stored; if this is the wrong store, `;
  const before = await storeBefore(result, next, 'before');
  if (before === undefined) {
    console.log(`${start}see docs/operate/corrections.md`);
    return;
  }
  const { where, database, at, file } = before;
  const exportWith = (...options: string[]): string =>
    ['npx plant-store export', words([...database, ...options])].filter(part => part !== '').join(' ');
  console.log(
    `${start}remove them as docs/operate/corrections.md says; to see them, ${where}: ` +
      `${exportWith('--at', at)} > ${file}; ${exportWith()} | diff ${file} -`,
  );
}

/** How commands read the store as it was before the import. */
interface StoreBefore {
  /** Where to run the commands, and what to replace in them. */
  where: string;
  /** The options that name the store. */
  database: string[];
  at: string;
  /** A new file. Its name has the time, so that no other import names the same file. */
  file: string;
}

/** @returns undefined if no response had a time */
async function storeBefore(
  { timeBefore, lastPlant }: ImportResult,
  { url, findStore }: NextOptions,
  fileStart: string,
): Promise<StoreBefore | undefined> {
  if (timeBefore.kind === 'unknown') return undefined;
  const at = new Date(timeBefore.ms).toISOString();
  const file = unusedPath(`${fileStart}-${at.replaceAll(':', '')}.csv`);
  const store = await findStore(lastPlant);
  switch (store.kind) {
    case 'options':
      return { where: 'run', database: store.words, at, file };
    case 'variable':
      return {
        where: 'run where PLANT_STORE_DATABASE has the value that it has here',
        database: [],
        at,
        file,
      };
    case 'unknown':
      return {
        where: `replace DATABASE by the store of the service at ${url}, and run on the machine of that store`,
        database: ['--database', 'DATABASE'],
        at,
        file,
      };
  }
}

function unusedPath(wanted: string): string {
  return numberedPaths(wanted).find(file => lstatSync(file, { throwIfNoEntry: false }) === undefined)!;
}

/** Makes words for a shell, visible and quoted. */
function words(texts: string[]): string {
  const quoted = (word: string): string =>
    /^[\w./:=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
  return visible(texts.map(quoted).join(' '));
}
