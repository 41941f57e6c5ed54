import type { StoredPlant } from '../client/plant-store.ts';
import type { Progress } from './progress.ts';
import type { TimeBefore } from './sending/response-watch.ts';

/** What an import has done. It grows while the import runs, so that it is true also at an early end. */
export interface ImportResult {
  readonly progress: Progress;
  readonly rejectsFiles: string[];
  /** What a person needs to know of the file with the ids. */
  idsSummary: string | undefined;
  /** Which rows are one plant, since their ids were made of the same text. */
  repeatedTexts: string | undefined;
  /** The last plant that the service confirmed. */
  lastPlant: StoredPlant | undefined;
  /** Rejected rows whose ids are stored with other content. */
  changed: number;
  /** Whether rows may have replaced content without being counted, since no response says so. */
  mayHaveReplaced: boolean;
  timeBefore: TimeBefore;
  /** The files that were not opened. */
  unsent: readonly string[];
  /** A Failure or the reason of the stop signal, if the import ended early. */
  cause: unknown;
}

/**
 * Whether new plants may be in the wrong store. There, rows have other content than is stored, and
 * few rows have the same.
 */
export function areNewInDoubt({ progress, changed }: ImportResult): boolean {
  const { created, unchanged } = progress.rowCounts;
  return changed > 0 && created > unchanged;
}
