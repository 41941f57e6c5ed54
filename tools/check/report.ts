import { amount } from '../../src/formats/number-text.ts';
import { visible } from '../../src/formats/visible-text.ts';
import type { Rule } from './rules.ts';

/** The result of one rule. No text in it contains the token. */
export type RuleResult = { rule: Rule } & (
  | { verdict: 'holds' }
  | { verdict: 'not checked'; reason: string }
  | Broken
);

interface Broken {
  verdict: 'does not hold';
  faults: string[];
  /** The request as text. */
  sent: string;
  /** The response as text; undefined if no complete response arrived. */
  received: string | undefined;
}

const NAMED_RULES_MAX = 5;

interface Summary {
  holds: number;
  doesNotHold: number;
  notChecked: number;
}

function summaryOf(results: readonly RuleResult[]): Summary {
  const count = (verdict: RuleResult['verdict']) => results.filter(each => each.verdict === verdict).length;
  return { holds: count('holds'), doesNotHold: count('does not hold'), notChecked: count('not checked') };
}

/** Makes the report for programs; docs/check.md describes its members. */
export function jsonReport(results: readonly RuleResult[], baseUrl: URL): string {
  const rules = results.map(result => {
    const { id, level, title, source } = result.rule;
    const rule = { id, level, title, source, verdict: result.verdict };
    if (result.verdict === 'holds') return rule;
    if (result.verdict === 'not checked') return { ...rule, message: result.reason };
    const { faults, sent, received } = result;
    return { ...rule, message: faults.join('; '), sent, received };
  });
  const text = JSON.stringify({ baseUrl: baseUrl.href, summary: summaryOf(results), rules }, undefined, 2);
  return `${text.split('\n').map(visible).join('\n')}\n`;
}

/** Makes the report for people: rules without faults, then each fault once, then the counts. */
export function textReport(results: readonly RuleResult[]): string {
  const lines: string[] = [];
  const faults: { result: RuleResult & Broken; line: string }[] = [];
  for (const result of results) {
    const { verdict, rule } = result;
    const start = `${verdict.padEnd(13)}  ${rule.level.padEnd(6)}  `;
    const line = `${start}${rule.id}: ${rule.title}`;
    if (verdict === 'holds') lines.push(line);
    else if (verdict === 'not checked') lines.push(`${line}; ${result.reason}`);
    else faults.push(...result.faults.map(fault => ({ result, line: visible(start + fault) })));
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

function evidenceOf({ rule, sent, received = '' }: RuleResult & Broken): string[] {
  const texts = [`${rule.title}; ${rule.source}`, `\nsent:\n${sent}`, `\nreceived:\n${received}`];
  return texts.flatMap(text => text.split('\n')).map(line => `    ${visible(line)}`.trimEnd());
}
