import { amount } from '../output/progress-display.ts';
import { visible } from '../output/visible-text.ts';
import type { Rule } from './rules.ts';

/** The result of one rule. No text in it contains the token. */
export interface RuleResult {
  rule: Rule;
  verdict: 'holds' | 'does not hold' | 'not checked';
  /** The faults, or why the rule was not checked; empty if the rule holds. */
  messages: string[];
  /** The request and the response of a fault, if any. */
  sent?: string;
  received?: string | undefined;
}

const NAMED_RULES_MAX = 5;

function summaryOf(results: readonly RuleResult[]) {
  const count = (verdict: RuleResult['verdict']) => results.filter(each => each.verdict === verdict).length;
  return { holds: count('holds'), doesNotHold: count('does not hold'), notChecked: count('not checked') };
}

/** Makes the report for programs; docs/check.md describes its members. */
export function jsonReport(results: readonly RuleResult[], baseUrl: URL): string {
  const rules = results.map(({ rule: { id, level, title, source }, verdict, messages, sent, received }) => {
    const message = messages.length > 0 ? messages.join('; ') : undefined;
    return { id, level, title, source, verdict, message, sent, received };
  });
  const text = JSON.stringify({ baseUrl: baseUrl.href, summary: summaryOf(results), rules }, undefined, 2);
  return `${text.split('\n').map(visible).join('\n')}\n`;
}

/** Makes the report for people: rules without faults, then each fault once, then the counts. */
export function textReport(results: readonly RuleResult[]): string {
  const lines: string[] = [];
  const faults: { result: RuleResult; line: string }[] = [];
  for (const result of results) {
    const { verdict, messages, rule } = result;
    const start = `${verdict.padEnd(13)}  ${rule.level.padEnd(6)}  `;
    if (verdict === 'does not hold')
      faults.push(...messages.map(message => ({ result, line: visible(start + message) })));
    else lines.push([`${start}${rule.id}: ${rule.title}`, ...messages].join('; '));
  }
  for (const [line, list] of Map.groupBy(faults, each => each.line)) {
    const ids = list.map(({ result }) => result.rule.id);
    const named = ids.slice(0, NAMED_RULES_MAX).join(', ') + (ids.length > NAMED_RULES_MAX ? ', …' : '');
    lines.push('', `${line} (${amount(ids.length, 'rule')}: ${named})`, ...evidenceOf(list[0]!.result));
  }
  const { holds, doesNotHold, notChecked } = summaryOf(results);
  lines.push('', `${holds} rules hold, ${doesNotHold} do not, ${notChecked} not checked`, '');
  return lines.join('\n');
}

function evidenceOf({ rule, sent = '', received = '' }: RuleResult): string[] {
  const texts = [`${rule.title}; ${rule.source}`, `\nsent:\n${sent}`, `\nreceived:\n${received}`];
  return texts.flatMap(text => text.split('\n')).map(line => `    ${visible(line)}`.trimEnd());
}
