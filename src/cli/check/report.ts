import { visible } from '../visible-text.ts';
import type { Rule } from './rule.ts';

/** The result of one rule. No text in it contains the token. */
export interface RuleResult {
  rule: Rule;
  verdict: 'holds' | 'does not hold' | 'not checked';
  /** Expectation and finding, or why the rule was not checked; undefined if the rule holds. */
  message?: string;
  /** The request and the response of the finding; undefined if there is none. */
  sent?: string;
  received?: string | undefined;
  elapsedMs: number;
}

export interface Report {
  baseUrl: URL;
  startedAt: Date;
  elapsedMs: number;
  results: RuleResult[];
  /** Why no rule could be checked; otherwise undefined. */
  failure?: string;
}

/** Counts of each verdict by level, and those of this store's own rules under `ours`. */
function summaryOf(results: readonly RuleResult[]) {
  const lists = Map.groupBy(results, ({ rule: { id, level } }) => (id.startsWith('ours.') ? 'ours' : level));
  const counts = [...lists].map(([name, list]) => {
    const count = (verdict: RuleResult['verdict']) => list.filter(each => each.verdict === verdict).length;
    return [
      name,
      { holds: count('holds'), doesNotHold: count('does not hold'), notChecked: count('not checked') },
    ] as const;
  });
  return Object.fromEntries(counts);
}

/** Whether this result makes the check fail. */
export function isBroken({ rule, verdict }: RuleResult): boolean {
  return verdict === 'does not hold' && rule.level === 'MUST';
}

/** The lines below a rule that does not hold: its source, the request and the response. */
export function evidenceOf({ rule, sent, received }: RuleResult): string[] {
  return [
    rule.source,
    ...(sent === undefined ? [] : ['', 'sent:', ...sent.split('\n')]),
    ...(received === undefined ? [] : ['', 'received:', ...received.split('\n')]),
  ];
}

/** For programs; docs/check.md describes the members. A member is never renamed or removed. */
export function jsonReport({ baseUrl, startedAt, elapsedMs, results, failure }: Report): string {
  const report = {
    baseUrl: baseUrl.href,
    startedAt: startedAt.toISOString(),
    elapsedMs: Math.round(elapsedMs),
    failure,
    summary: summaryOf(results),
    rules: results.map(({ rule: { id, level, title, source }, elapsedMs, verdict, ...finding }) => ({
      ...{ id, level, title, source, verdict, ...finding },
      elapsedMs: Math.round(elapsedMs),
    })),
  };
  return `${JSON.stringify(report, undefined, 2).split('\n').map(visible).join('\n')}\n`;
}

/** For people: a line for each rule, the evidence of each finding, and the counts. */
export function textReport({ results, failure }: Report): string {
  if (failure !== undefined) return '';
  const idLength = Math.max(...results.map(({ rule }) => rule.id.length));
  const sums = Object.entries(summaryOf(results)).map(([name, { holds, doesNotHold, notChecked }]) => {
    const left = notChecked > 0 ? `, ${notChecked} not checked` : '';
    return `${`${name}:`.padEnd('SHOULD:'.length)} ${holds} hold, ${doesNotHold} do not${left}`;
  });
  const lines = results.flatMap(result => {
    const { verdict, message = '', rule } = result;
    const line = `${verdict.padEnd(13)}  ${rule.level.padEnd(6)}  ${rule.id.padEnd(idLength)}  ${rule.title}`;
    if (verdict === 'holds') return [line];
    if (verdict === 'not checked') return [`${line} (${message})`];
    const below = [message, ...evidenceOf(result)].map(each => `    ${visible(each)}`.trimEnd());
    return [line, ...below, ''];
  });
  return [...lines, '', ...sums, ''].join('\n');
}
