import type { Target } from './target.ts';

/**
 * How binding a rule is, by RFC 2119. Among the rules for every server MUST is what the interface itself says, SHOULD
 * what HTTP and JSON say where it is silent, and MAY a free choice worth knowing; among our own, MUST is our promise.
 */
export type Level = 'MUST' | 'SHOULD' | 'MAY';

/** One rule of the operation, and the way to find out whether a server keeps it. */
export interface Rule {
  /** Never changes and is never given to another rule: reports and lists of exceptions hold on to it. */
  id: string;
  level: Level;
  /** What holds, as a sentence. */
  title: string;
  /** Where the rule is written. */
  source: string;
  /** Ids that the check sends whatever ids it is given: the ends of int64 and the like. */
  fixedIds?: readonly bigint[];
  /**
   * Settles when the rule holds.
   *
   * @throws {Finding} when it does not
   * @throws {NotChecked} when it cannot be told
   */
  check(target: Target): Promise<void>;
}
