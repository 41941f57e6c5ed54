import { lstatSync } from 'node:fs';
import { Interruption } from '../../src/cli/shared/interruption.ts';
import type { StoredPlant } from '../../src/client/plant-store.ts';
import { amount } from '../../src/formats/number-text.ts';
import { visible } from '../../src/formats/visible-text.ts';
import type { ImportResult } from './import-result.ts';
import { ambiguousTextsText } from './rows/id-maker.ts';
import { SAFE_TO_REPEAT } from './rows/plant-row.ts';
import type { ServiceStore } from './service-store.ts';
import { numberedPaths } from './written/new-lines-file.ts';
import { otherContentText } from './written/replaced-list.ts';

/** So many rows with other content cast doubt on new plants, however many these are. */
const CHANGED_IN_DOUBT = 10;

/** Options of the commands that are printed. */
export interface NextOptions {
  /** The service to which the plants were sent. */
  url: URL;
  /** The address and the token file, if they were given. */
  service: string[];
  /** The columns of whose texts the ids are made. */
  textColumns: readonly string[] | undefined;
  /** The options with which the rejects files are imported. */
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
  if (cause === undefined && progress.done === 0)
    console.error('WARNING: no file has a row, so nothing was sent');
  if (rowCounts.rejected > 0) reportRejected(result, next);
  const isUndone = isUndoOffered(result);
  // The undo does not remove new plants.
  const isNewReported = areNewInDoubt(result) || (isUndone && rowCounts.created > 0);
  if (isUndone || isNewReported) {
    const before = await storeBefore(result, next);
    if (isUndone) reportUndo(result, before, next);
    if (isNewReported) reportNew(rowCounts.created, before, isUndone);
  }
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
  { progress, rejectsFiles, changed, repeated, cause }: ImportResult,
  { service, made, textColumns }: NextOptions,
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
  const invalid = rejected - changed - repeated;
  if (changed + repeated === 0) {
    console.log(`${where}; correct and import again: ${importAgain()}`);
    return;
  }
  console.log(where);
  if (invalid > 0) console.log(`correct ${amount(invalid, 'row')}, and import again: ${importAgain()}`);
  const ambiguous = textColumns === undefined ? 0 : repeated;
  if (textColumns !== undefined && ambiguous > 0)
    console.log(
      `${ambiguousTextsText(ambiguous, textColumns)} and import the original; this changes all ids, and plants with the former ids stay`,
    );
  const replacing = changed + repeated - ambiguous;
  if (replacing === 0) return;
  const right = replacing === 1 ? 'the row is right, replace it' : 'the rows are right, replace them';
  const first = ambiguous > 0 ? `delete the other rows of ${files}; then, ` : '';
  console.log(`${otherContentText(replacing)}; ${first}if ${right}: ${importAgain('--replace')}`);
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

/**
 * Whether new plants may be in the wrong store. There, most rows whose ids are stored have other
 * content. A few such rows are normal in a right list, unless they are a tenth of the new ones.
 */
function areNewInDoubt({ progress, changed }: ImportResult): boolean {
  const { created, unchanged } = progress.rowCounts;
  return created > unchanged && changed > unchanged && changed >= Math.min(CHANGED_IN_DOUBT, created / 10);
}

/** Says how to set replaced plants back. The rows can be looked at before: two commands. */
function reportUndo(
  { progress, mayHaveReplaced }: ImportResult,
  before: StoreBefore | undefined,
  { service }: NextOptions,
): void {
  const { revised } = progress.rowCounts;
  const certain = revised === 0 ? [] : [`${amount(revised, 'row')} replaced`];
  const lost = mayHaveReplaced ? ['rows of a failed request may have replaced'] : [];
  const start = `to undo what ${[...certain, ...lost].join(', and what ')}, `;
  if (before === undefined) {
    console.log(
      `${start}see docs/operate/corrections.md; the responses did not show the time, so choose one before the import`,
    );
    return;
  }
  const { where, database, at } = before;
  const file = newFile('earlier', at);
  console.log(
    `${start}${where}: npx plant-store export ${words([...database, '--at', at, '--changed'])} > ${file}`,
  );
  console.log(
    'then set these plants back, also those that others have changed since: ' +
      `npx plant-store import --replace ${words([...service, file])}`,
  );
}

/** Says how to find the new plants if the store is the wrong one. @param isUndone whether an undo is printed */
function reportNew(created: number, before: StoreBefore | undefined, isUndone: boolean): void {
  const start = `${amount(created, 'new plant')} ${created === 1 ? 'was' : 'were'} stored; if this is the wrong store, `;
  if (before === undefined) {
    console.log(`${start}see docs/operate/corrections.md`);
    return;
  }
  const { where, database, at } = before;
  const file = newFile('before', at);
  const exportWith = (...options: string[]): string =>
    ['npx plant-store export', words([...database, ...options])].filter(part => part !== '').join(' ');
  // Until then, the command shows replaced plants, too.
  const when = isUndone ? ' after the undo' : '';
  console.log(
    `${start}remove them as docs/operate/corrections.md says; to see them${when}, ${where}: ` +
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
}

/** @returns undefined if the time is not known */
async function storeBefore(
  { timeBefore, lastPlant }: ImportResult,
  { url, findStore }: NextOptions,
): Promise<StoreBefore | undefined> {
  if (timeBefore === undefined) return undefined;
  const at = new Date(timeBefore).toISOString();
  const store = await findStore(lastPlant);
  switch (store.kind) {
    case 'options':
      return { where: 'run', database: store.words, at };
    case 'variable':
      return {
        where: 'run where PLANT_STORE_DATABASE has the value that it has here',
        database: [],
        at,
      };
    case 'unknown':
      return {
        where: `replace DATABASE by the store of the service at ${url} (sqlite:PATH or postgres://…), and run on the machine of that store`,
        database: ['--database', 'DATABASE'],
        at,
      };
  }
}

/** Names a new file. The name has the time, so that no other import names the same file. */
function newFile(start: string, at: string): string {
  const wanted = `${start}-${at.replaceAll(':', '')}.csv`;
  return numberedPaths(wanted).find(file => lstatSync(file, { throwIfNoEntry: false }) === undefined)!;
}

/** Makes words for a shell, visible and quoted. */
function words(texts: string[]): string {
  const quoted = (word: string): string =>
    /^[\w./:=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
  return visible(texts.map(quoted).join(' '));
}
