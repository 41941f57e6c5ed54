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

export interface Report {
  baseUrl: URL;
  startedAt: Date;
  elapsedMs: number;
  results: RuleResult[];
  /** Why there was nothing to check; undefined when there was. */
  failure?: string;
}

/** How many rules there are of each verdict: those for every store by level, and those of this plant store. */
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

/** Whether a rule does not hold that must: one of the interface, or a promise of this plant store that was asked for. */
export function isBroken({ rule, verdict }: RuleResult): boolean {
  return verdict === 'does not hold' && rule.level === 'MUST';
}

/** What stands below a rule that does not hold: where it is written, the request and the response. */
export function evidenceOf({ rule, sent, received }: RuleResult): string[] {
  return [
    rule.source,
    ...(sent === undefined ? [] : ['', 'sent:', ...sent.split('\n')]),
    ...(received === undefined ? [] : ['', 'received:', ...received.split('\n')]),
  ];
}

/** For programs; docs/check.md describes its members. New ones may be added, none is renamed or removed. */
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

/** For people: a line for each rule, below it what does not fit, and what it comes to at the end. */
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
