import { visible } from '../visible-text.ts';
import { type Report, tallyResults } from './report.ts';

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
