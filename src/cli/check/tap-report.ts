import { visible } from '../visible-text.ts';
import type { RuleResult } from './check-run.ts';
import { type Report, tallyResults } from './report.ts';

/**
 * TAP version 13 (https://testanything.org/tap-version-13-specification.html), which readers of version 14 take too, while
 * some take no other. A rule that does not hold and need not is marked `# TODO`, which TAP counts as no failure; one that was
 * not checked is marked `# SKIP`.
 */
export function tapReport({ results, failure }: Report): string {
  const begin = 'TAP version 13';
  if (failure !== undefined) return `${begin}\nBail out! ${escapeHash(visible(failure))}\n`;
  const points = results.flatMap((result, index) => pointOf(result, index + 1));
  const counts = tallyResults(results).map(
    ({ name, holds, doesNotHold, notChecked }) =>
      `# ${name}: ${holds} hold, ${doesNotHold} do not, ${notChecked} not checked`,
  );
  return [begin, `1..${results.length}`, ...points, ...counts, ''].join('\n');
}

function pointOf(
  { rule, verdict, message = '', sent, received, elapsedMs }: RuleResult,
  number: number,
): string[] {
  const { id, level, title, source } = rule;
  const description = `${number} - ${escapeHash(`${level} ${id}: ${title}`)}`;
  if (verdict === 'holds') return [`ok ${description}`];
  if (verdict === 'not checked') return [`ok ${description} # SKIP ${escapeHash(visible(message))}`];
  const directive = level === 'MUST' ? '' : ` # TODO ${level}, so it need not hold`;
  return [
    `not ok ${description}${directive}`,
    '  ---',
    ...Object.entries({ message, source, sent, received, duration_ms: Math.round(elapsedMs) })
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => `  ${key}: ${yamlScalar(value!)}`),
    '  ...',
  ];
}

function escapeHash(text: string): string {
  return text.replace(/[\\#]/g, String.raw`\$&`);
}

/** A JSON string is a double-quoted scalar of YAML 1.2, once nothing in it is written raw that YAML cannot hold. */
function yamlScalar(value: string | number): string {
  return visible(JSON.stringify(value));
}
