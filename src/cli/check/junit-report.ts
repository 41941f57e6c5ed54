import { visible } from '../visible-text.ts';
import { isBroken, type Report, type RuleResult } from './report.ts';

/**
 * JUnit XML, as CI servers read it (https://github.com/testmoapp/junitxml describes what they agree on). It has no word for
 * a rule that does not hold and need not: that is a test case that was skipped, with the finding as its output.
 */
export function junitReport({ baseUrl, startedAt, elapsedMs, results, failure }: Report): string {
  const broken = results.filter(isBroken).length;
  const counts = {
    tests: results.length + (failure === undefined ? 0 : 1),
    failures: broken,
    errors: failure === undefined ? 0 : 1,
    skipped: results.filter(({ verdict }) => verdict !== 'holds').length - broken,
    time: seconds(elapsedMs),
  };
  const cases = results.flatMap(caseOf);
  if (failure !== undefined) {
    cases.push(
      `    ${open('testcase', { classname: 'plant-store', name: 'the server can be checked', time: '0' })}`,
    );
    cases.push(`      ${element('error', { message: failure })}`, '    </testcase>');
  }
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    open('testsuites', { name: 'plant-store check', ...counts }),
    `  ${open('testsuite', { name: baseUrl.href, ...counts, timestamp: startedAt.toISOString() })}`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

function caseOf(result: RuleResult): string[] {
  const { rule, verdict, message = '', sent, received, elapsedMs } = result;
  const attributes = {
    classname: rule.id.startsWith('ours.') ? 'plant-store.ours' : `plant-store.${rule.level}`,
    name: `${rule.id}: ${rule.title}`,
    time: seconds(elapsedMs),
  };
  if (verdict === 'holds') return [`    ${element('testcase', attributes)}`];
  const exchange = [
    rule.source,
    ...(sent === undefined ? [] : [`sent:\n${sent}`]),
    ...(received === undefined ? [] : [`received:\n${received}`]),
  ].join('\n\n');
  const what = isBroken(result)
    ? [`<failure message="${attribute(message)}">${content(exchange)}</failure>`]
    : [
        element('skipped', { message: verdict === 'not checked' ? message : `${rule.level}: ${message}` }),
        ...(sent === undefined ? [] : [`<system-out>${content(exchange)}</system-out>`]),
      ];
  return [`    ${open('testcase', attributes)}`, ...what.map(line => `      ${line}`), '    </testcase>'];
}

function open(name: string, attributes: Record<string, string | number>): string {
  const texts = Object.entries(attributes).map(([key, value]) => ` ${key}="${attribute(String(value))}"`);
  return `<${name}${texts.join('')}>`;
}

function element(name: string, attributes: Record<string, string | number>): string {
  return open(name, attributes).replace(/>$/, '/>');
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/** The value of an attribute, on one line. */
function attribute(text: string): string {
  return escapeMarkup(visible(text));
}

/** The text of an element, with its lines. */
function content(text: string): string {
  return text.split('\n').map(attribute).join('\n');
}

/** What XML 1.0 section 2.2 allows in no form, {@link visible} has written as JSON does before. */
function escapeMarkup(text: string): string {
  const references: Record<string, string> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' };
  return text.replace(/[<>&"]/g, character => references[character]!);
}
