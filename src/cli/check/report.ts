import type { RuleResult } from './check-run.ts';
import type { Level } from './rule.ts';

/** A run of the rules against a server, as it is written in one of the formats. */
export interface Report {
  /** The base address. */
  baseUrl: URL;
  startedAt: Date;
  elapsedMs: number;
  results: RuleResult[];
  /** Why there was nothing to check; undefined when there was. */
  failure?: string;
}

/** The lists that are counted by themselves: the rules for every store by level, and those of this plant store. */
export const TALLIES = ['MUST', 'SHOULD', 'MAY', 'ours'] as const;

/** How many rules of a list there are of each verdict. */
export interface Tally {
  name: (typeof TALLIES)[number];
  holds: number;
  doesNotHold: number;
  notChecked: number;
}

/** Each list that has rules in the report. */
export function tallyResults(results: readonly RuleResult[]): Tally[] {
  return TALLIES.map(name => {
    const own = results.filter(({ rule }) => tallyOf(rule) === name);
    const count = (verdict: RuleResult['verdict']) => own.filter(each => each.verdict === verdict).length;
    return {
      name,
      holds: count('holds'),
      doesNotHold: count('does not hold'),
      notChecked: count('not checked'),
    };
  }).filter(({ holds, doesNotHold, notChecked }) => holds + doesNotHold + notChecked > 0);
}

function tallyOf({ id, level }: { id: string; level: Level }): Tally['name'] {
  return id.startsWith('ours.') ? 'ours' : level;
}

/** Whether a rule does not hold that must: one of the interface, or a promise of this plant store that was asked for. */
export function isBroken({ rule, verdict }: RuleResult): boolean {
  return verdict === 'does not hold' && rule.level === 'MUST';
}
