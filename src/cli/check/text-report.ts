import { visible } from '../visible-text.ts';
import { type Report, type RuleResult, type Tally, tallyResults } from './report.ts';

/** For people: a line for each rule, below it what does not fit, and what it comes to at the end. */
export function textReport({ results, failure }: Report): string {
  if (failure !== undefined) return '';
  const idLength = Math.max(...results.map(({ rule }) => rule.id.length));
  return [
    ...results.flatMap(result => linesOf(result, idLength)),
    '',
    ...tallyResults(results).map(sentenceOf),
    '',
  ].join('\n');
}

function linesOf({ rule, verdict, message, sent, received }: RuleResult, idLength: number): string[] {
  const { id, level, title, source } = rule;
  const line = `${verdict.padEnd('does not hold'.length)}  ${level.padEnd('SHOULD'.length)}  ${id.padEnd(idLength)}  ${title}`;
  if (verdict === 'holds') return [line];
  if (verdict === 'not checked') return [`${line} (${message})`];
  return [
    line,
    `    ${source}`,
    `    ${visible(message ?? '')}`,
    ...blockOf('sent', sent),
    ...blockOf('received', received),
    '',
  ];
}

function blockOf(name: string, text: string | undefined): string[] {
  return text === undefined
    ? []
    : [`    ${name}:`, ...text.split('\n').map(line => `      ${visible(line)}`.trimEnd())];
}

function sentenceOf({ name, holds, doesNotHold, notChecked }: Tally): string {
  const parts = [`${holds} hold`, `${doesNotHold} do not`];
  if (notChecked > 0) parts.push(`${notChecked} not checked`);
  return `${`${name}:`.padEnd('SHOULD:'.length)} ${parts.join(', ')}`;
}
