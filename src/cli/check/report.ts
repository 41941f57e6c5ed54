import { visible } from '../visible-text.ts';
import type { Rule } from './rule.ts';

/** What came of one rule. No text in it holds the token. */
export interface RuleResult {
  rule: Rule;
  verdict: 'holds' | 'does not hold' | 'not checked';
  /** What was expected and found, or why the rule was not checked; undefined when it holds. */
  message?: string;
  /** The request and the response that do not fit; undefined when there is none. */
  sent?: string;
  received?: string | undefined;
  elapsedMs: number;
}

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

/** How many rules of a list there are of each verdict. */
export interface Tally {
  name: (typeof TALLIES)[number];
  holds: number;
  doesNotHold: number;
  notChecked: number;
}

/** The lists that are counted by themselves: the rules for every store by level, and those of this plant store. */
const TALLIES = ['MUST', 'SHOULD', 'MAY', 'ours'] as const;

/** Each list that has rules in the report. */
export function tallyResults(results: readonly RuleResult[]): Tally[] {
  return TALLIES.flatMap(name => {
    const own = results.filter(
      ({ rule: { id, level } }) => name === (id.startsWith('ours.') ? 'ours' : level),
    );
    const count = (verdict: RuleResult['verdict']) => own.filter(each => each.verdict === verdict).length;
    const [holds, doesNotHold] = [count('holds'), count('does not hold')];
    return own.length === 0 ? [] : [{ name, holds, doesNotHold, notChecked: count('not checked') }];
  });
}

/** Whether a rule does not hold that must: one of the interface, or a promise of this plant store that was asked for. */
export function isBroken({ rule, verdict }: RuleResult): boolean {
  return verdict === 'does not hold' && rule.level === 'MUST';
}

/** For programs; docs/check.md describes its members. New ones may be added, none is renamed or removed. */
export function jsonReport({ baseUrl, startedAt, elapsedMs, results, failure }: Report): string {
  const report = {
    baseUrl: baseUrl.href,
    startedAt: startedAt.toISOString(),
    elapsedMs: Math.round(elapsedMs),
    ...(failure !== undefined && { failure }),
    summary: Object.fromEntries(tallyResults(results).map(({ name, ...counts }) => [name, counts])),
    rules: results.map(
      ({ rule: { id, level, title, source }, verdict, message, sent, received, ...rest }) => ({
        ...{ id, level, title, source, verdict, message, sent, received },
        elapsedMs: Math.round(rest.elapsedMs),
      }),
    ),
  };
  return `${JSON.stringify(report, undefined, 2).split('\n').map(visible).join('\n')}\n`;
}
