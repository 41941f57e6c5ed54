import type { IntactRevision } from '../core/commit/plant-revision.ts';
import { StoreRejected } from '../core/commit/store-errors.ts';
import type { StoredToken } from '../core/tokens/stored-token.ts';

export interface CopyTarget extends AsyncDisposable {
  /**
   * Inserts revisions in the order of their keys, in one transaction. Resolves when it is durable.
   * @throws {StoreRejected} when a row exists: another program, or a killed copy, inserted it late
   * @throws {StoreUnavailable} when all of them may be stored, or none
   */
  insertRevisions(revisions: readonly IntactRevision[]): Promise<void>;
  /**
   * Gives tokens the state of the source, in one transaction. Each change gets the next change
   * number. A token that another program changed meanwhile stays: the comparison finds it.
   */
  putTokens(tokens: readonly StoredToken[]): Promise<void>;
}

export function concurrentChangeError(what: string): StoreRejected {
  return new StoreRejected(`another program wrote ${what} of the target during the copy`, {
    advice: 'stop the services on it, and copy again',
  });
}
