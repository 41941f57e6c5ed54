import type { Query } from './revision-rows.ts';

/** How an engine runs statements on the tables that both engines have. */
export interface TableAccess {
  /** Runs a statement that only reads. */
  readRows: Query;
  /**
   * Runs a statement that changes rows. Its change is durable when the promise resolves. After a
   * failure the change may be stored or not.
   */
  writeRows: Query;
}

/** A list of parameters for a statement, such as `$1, $2`. */
export function parameters(values: readonly unknown[], first = 1): string {
  return values.map((_, index) => `$${first + index}`).join(', ');
}
