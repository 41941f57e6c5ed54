import type { StoredPlant } from '../../src/client/plant-store.ts';
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
  /** Rejected rows whose ids were stored with other content before the import. */
  changed: number;
  /** Rejected rows whose ids an earlier row has, with other content. */
  repeated: number;
  /** Whether rows may have replaced content without being counted, since no response says so. */
  mayHaveReplaced: boolean;
  timeBefore: TimeBefore;
  /** The files that were not opened. */
  unsent: readonly string[];
  /** A Failure or the reason of the stop signal, if the import ended early. */
  cause: unknown;
}

/** So many rows with other content cast doubt on new plants, however many these are. */
const CHANGED_IN_DOUBT = 10;

/**
 * Whether new plants may be in the wrong store. There, most rows whose ids are stored have other
 * content. A few such rows are normal in a right list, unless they are a tenth of the new ones.
 */
export function areNewInDoubt({ progress, changed }: ImportResult): boolean {
  const { created, unchanged } = progress.rowCounts;
  return created > unchanged && changed > unchanged && changed >= Math.min(CHANGED_IN_DOUBT, created / 10);
}
