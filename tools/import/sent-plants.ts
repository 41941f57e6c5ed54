import { Failure } from '../../src/cli/shared/failure.ts';
import { ERRORS, type ErrorBody } from '../../src/core/contract/errors.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';
import type { Progress } from './progress.ts';
import { lineBreakText, type PlantRow, type PlantRows, SAFE_TO_REPEAT } from './rows/plant-row.ts';
import { DamagedGzip, fileName } from './text/file-bytes.ts';

const ROWS_SENT = `rows before it, if any, were sent, and ${SAFE_TO_REPEAT}`;
const ROWS_IN_DOUBT = 'rows that were sent can be wrong, so compare them with the new copy';

/** A plant to send, and the row that has it. */
export type SentPlant = NewPlant & { row: PlantRow };

/** Yields the valid plants of a file, and rejects its other rows, so that they are never sent. */
export async function* plantsOf(
  batches: PlantRows,
  progress: Progress,
  reject: (row: PlantRow, fault: ErrorBody) => void,
): AsyncGenerator<SentPlant, void, undefined> {
  try {
    for await (const rows of batches) {
      for (const [index, row] of rows.entries()) {
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

/** Yields the same rows. It notes the first field with a line break, which may contain rows. */
export async function* withLineBreakNote(
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
