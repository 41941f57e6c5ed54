import { lstatSync } from 'node:fs';
import { Interruption } from '../command-line/interruption.ts';
import { amount } from '../formats/number-text.ts';
import { visible } from '../formats/visible-text.ts';
import type { ImportResult } from './import-result.ts';
import { SAFE_TO_REPEAT } from './rows/plant-row.ts';
import { numberedPaths } from './written/numbered-paths.ts';
import { otherContentText } from './written/replaced-list.ts';

/** Options of the commands that are printed. */
export interface NextOptions {
  /** The address and the token file, if they were given. */
  service: string[];
  /** How the ids of the rejects files are made. */
  made: string[];
}

/**
 * Prints the result of an import, and the commands that come next.
 *
 * @returns the exit code
 * @throws the reason if the import ended early
 */
export function report(result: ImportResult, next: NextOptions): number {
  const { progress, idsSummary, unsent, cause } = result;
  const { rowCounts } = progress;
  if (cause === undefined || progress.done > 0) console.log(progress.summary());
  if (idsSummary !== undefined) console.log(idsSummary);
  if (rowCounts.rejected > 0) reportRejected(result, next);
  if (isUndoOffered(result)) reportUndo(result, next);
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
function reportUndo({ progress, mayHaveReplaced, timeBefore }: ImportResult, { service }: NextOptions): void {
  const { revised } = progress.rowCounts;
  const certain = revised === 0 ? [] : [`${amount(revised, 'row')} replaced`];
  const lost = mayHaveReplaced ? ['rows of a failed request may have replaced'] : [];
  const start = `to undo what ${[...certain, ...lost].join(', and what ')}, `;
  if (timeBefore.kind === 'unknown') {
    console.log(
      `${start}see docs/operate/corrections.md; no response had a time, so choose one before the import`,
    );
    return;
  }
  const at = new Date(timeBefore.ms).toISOString();
  const file = unusedPath('earlier.csv');
  console.log(
    `${start}run on the machine of the store: npx plant-store export --at ${at} --changed > ${file}`,
  );
  console.log(
    `delete the rows of ${file} that others have changed since, then run: ` +
      `npx plant-store import --replace ${words([...service, file])}`,
  );
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
