import { Interruption } from '../interruption.ts';
import { amount } from '../output/number-text.ts';
import { visible } from '../output/visible-text.ts';
import type { ImportResult } from './import-run.ts';
import { SAFE_TO_REPEAT } from './rows/plant-row.ts';
import type { TimeBefore } from './sending/response-watch.ts';

/**
 * Prints the result of an import, and the commands that come next.
 *
 * @param again options with which the rejects files are imported
 * @returns the exit code
 * @throws the reason if the import ended early
 */
export function report(result: ImportResult, again: string[]): number {
  const { progress, idsSummary, unsent, cause } = result;
  const { rowCounts } = progress;
  if (cause === undefined || progress.done > 0) console.log(progress.summary());
  if (idsSummary !== undefined) console.log(idsSummary);
  if (rowCounts.rejected > 0) reportRejected(result, again);
  if (rowCounts.revised > 0) console.log(undoText(rowCounts.revised, result.timeBefore));
  if (cause !== undefined && unsent.length > 0) console.error(`not sent: ${visible(unsent.join(' '))}`);
  if (cause instanceof Interruption) {
    console.error(`plant-store: stopped; confirmed plants are stored, and ${SAFE_TO_REPEAT}`);
    return cause.exitCode;
  }
  if (cause !== undefined) throw cause;
  return rowCounts.rejected === 0 ? 0 : 1;
}

/** Says where the rejected rows are, and which command stores them. */
function reportRejected({ progress, rejectsFiles, changed, cause }: ImportResult, again: string[]): void {
  const { rejected } = progress.rowCounts;
  const files = words(rejectsFiles);
  const where = `${amount(rejected, 'rejected row')} ${rejected === 1 ? 'is' : 'are'} in ${files}, with the reasons`;
  if (cause !== undefined) {
    console.log(`${where}; not all rows were sent, so correct and import the original`);
    return;
  }
  const importAgain = (...options: string[]): string =>
    `npx plant-store import ${words([...options, ...again, ...rejectsFiles])}`;
  const invalid = rejected - changed;
  if (changed === 0) {
    console.log(`${where}; correct and import again: ${importAgain()}`);
    return;
  }
  console.log(where);
  if (invalid > 0) console.log(`correct ${amount(invalid, 'row')}, and import again: ${importAgain()}`);
  console.log(
    `${amount(changed, 'row')} ${changed === 1 ? 'has' : 'have'} other content than is stored; ` +
      `if the rows are right, replace it: ${importAgain('--replace')}`,
  );
}

/** Says how to set replaced plants back. */
function undoText(replaced: number, time: TimeBefore): string {
  const start = `to undo the replacement of ${amount(replaced, 'plant')}, `;
  if (time.kind === 'unknown')
    return `${start}see docs/operate/corrections.md; no response had a time, so choose one before the import`;
  const at = new Date(time.ms).toISOString();
  return `${start}run on the machine of the store: npx plant-store export --at ${at} --changed > earlier.csv && npx plant-store import --replace earlier.csv`;
}

/** Makes words for a shell, visible and quoted. */
function words(texts: string[]): string {
  const quoted = (word: string): string =>
    /^[\w./=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
  return visible(texts.map(quoted).join(' '));
}
