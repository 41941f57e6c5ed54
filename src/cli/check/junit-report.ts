import { visible } from '../visible-text.ts';
import { evidenceOf, isBroken, type Report, type RuleResult } from './report.ts';

/**
 * JUnit XML, as CI servers read it (https://github.com/testmoapp/junitxml describes what they agree on). It has no word for
 * a rule that does not hold and need not: that is a test case that was skipped, with the finding as its output.
 */
export function junitReport({ baseUrl, startedAt, elapsedMs, results, failure }: Report): string {
  const cases = results.map(testCase);
  if (failure !== undefined) {
    const attributes = { classname: 'plant-store', name: 'the server can be checked', time: '0' };
    cases.push(element('testcase', attributes, [element('error', { message: failure })]));
  }
  const broken = results.filter(isBroken).length;
  const counts = {
    tests: cases.length,
    failures: broken,
    errors: failure === undefined ? 0 : 1,
    skipped: results.filter(({ verdict }) => verdict !== 'holds').length - broken,
    time: seconds(elapsedMs),
  };
  const suite = { name: baseUrl.href, ...counts, timestamp: startedAt.toISOString() };
  const suites = [element('testsuite', suite, cases)];
  const document = element('testsuites', { name: 'plant-store check', ...counts }, suites);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${document}\n`;
}

function testCase(result: RuleResult): string {
  const { rule, verdict, message = '', elapsedMs } = result;
  const attributes = {
    classname: rule.id.startsWith('ours.') ? 'plant-store.ours' : `plant-store.${rule.level}`,
    name: `${rule.id}: ${rule.title}`,
    time: seconds(elapsedMs),
  };
  if (verdict === 'holds') return element('testcase', attributes);
  if (verdict === 'not checked') return element('testcase', attributes, [element('skipped', { message })]);
  const text = evidenceOf(result).map(escapeMarkup);
  const what = isBroken(result)
    ? [element('failure', { message }, text)]
    : [element('skipped', { message: `${rule.level}: ${message}` }), element('system-out', {}, text)];
  return element('testcase', attributes, what);
}

/** @param content elements or lines; undefined: none */
function element(name: string, attributes: Record<string, string | number>, content?: string[]): string {
  const texts = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeMarkup(String(value))}"`);
  const start = `<${name}${texts.join('')}`;
  return content === undefined ? `${start}/>` : `${start}>${content.join('\n')}</${name}>`;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/** On one line. What XML 1.0 section 2.2 allows in no form, {@link visible} writes as JSON does. */
function escapeMarkup(text: string): string {
  const references: Record<string, string> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' };
  return visible(text).replace(/[<>&"]/g, character => references[character]!);
}
