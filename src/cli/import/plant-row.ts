import type { ErrorBody } from '../../contract/errors.ts';
import type { NewPlantReading } from '../../contract/plant.ts';
import { Failure } from '../failure.ts';
import { ROW_LENGTH_MAX } from './limits.ts';

/** One row, line or element of an input file. */
export interface PlantRow {
  /** Counted from 1: the data row of a CSV file, the line of a JSON Lines file, the element of a JSON array. */
  readonly number: number;
  /** The plant it holds, or why it holds none. */
  readonly reading: NewPlantReading;
  /** What a file with rejected rows of this input begins with; may be empty. */
  rejectsHeader(): string;
  /** The row as a line of that file, its own text exact, with the reason. */
  rejectsLine(fault: ErrorBody): string;
}

/** Rows in file order, as many at a time as one piece of the file brought. */
export type PlantRows = AsyncGenerator<PlantRow[], void, undefined>;

/** What a rejects file adds to each row; what an earlier one added is replaced. */
export const REASON_NAMES = ['row', 'error', 'message'];

/** Said wherever the import stops in the middle of a file. */
export const HARMLESS = 'the rows before it were sent, and running the import again is harmless';

/** @param mark what may have been left open, so that the row does not end */
export function tooLong(row: string, mark: string): Failure {
  return new Failure(
    `${row} is longer than ${ROW_LENGTH_MAX / 1024 / 1024} MiB; is a ${mark} in it never closed? ${HARMLESS}`,
  );
}
