import { visible } from '../visible-text.ts';
import { evidenceOf, isBroken, type Report, type RuleResult } from './report.ts';

/**
 * JUnit XML for CI servers (https://github.com/testmoapp/junitxml describes the common format). A
 * SHOULD or MAY rule that does not hold is a skipped test case, with the finding as its output.
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

/** @param content elements or lines; undefined: an empty element */
function element(name: string, attributes: Record<string, string | number>, content?: string[]): string {
  const texts = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeMarkup(String(value))}"`);
  const start = `<${name}${texts.join('')}`;
  return content === undefined ? `${start}/>` : `${start}>${content.join('\n')}</${name}>`;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/** One line. {@link visible} escapes characters that XML 1.0 section 2.2 does not allow. */
function escapeMarkup(text: string): string {
  const references: Record<string, string> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' };
  return visible(text).replace(/[<>&"]/g, character => references[character]!);
}
