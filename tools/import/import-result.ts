import type { StoredPlant } from '../../src/client/plant-store.ts';
import type { Progress } from './progress.ts';

/** What an import has done. It grows while the import runs, so that it is true also at an early end. */
export class ImportResult {
  readonly progress: Progress;
  readonly rejectsFiles: string[] = [];
  /** What a person needs to know of the file with the ids. */
  idsSummary: string | undefined;
  /** Which rows are one plant, since their ids were made of the same text. */
  repeatedTexts: string | undefined;
  /** The last plant that the service confirmed. */
  lastPlant: StoredPlant | undefined;
  /** Rejected rows whose ids were stored with other content before the import. */
  changed = 0;
  /** Rejected rows whose ids an earlier row has, with other content. */
  repeated = 0;
  /** Whether rows may have replaced content without being counted, since no response says so. */
  mayHaveReplaced = false;
  /** The time for an undo, in ms since 1970 UTC; undefined if no response has shown it. */
  timeBefore: number | undefined;
  /** The files that were not opened. */
  unsent: readonly string[] = [];
  /** A Failure or the reason of the stop signal, if the import ended early. */
  cause: unknown;

  constructor(progress: Progress) {
    this.progress = progress;
  }
}
