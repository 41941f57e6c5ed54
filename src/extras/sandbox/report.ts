import type { RecordedLine } from './sandbox-files.ts';

/** The contents of the requests with one id, and the status of the last one. */
type Sent = { contents: string[]; status: number | undefined };

const COLUMNS: Record<string, (sent: Sent) => number | boolean> = {
  REQUESTS: ({ contents }) => contents.length,
  RETRIES: ({ contents }) => contents.length - new Set(contents).size,
  'IDS RETRIED': ({ contents }) => contents.length > new Set(contents).size,
  'IDS GIVEN UP': ({ status }) => status !== 200,
  'IDS CHANGED': ({ contents }) => new Set(contents).size > 1,
};

/**
 * Counts what clients did in each case that they asked for. A request that asks for nothing belongs
 * to the case of the previous request with its id: a retry may leave out the preference.
 *
 * @returns the rows of a table, and its header
 */
export function reportOf(lines: readonly RecordedLine[]): (string | number)[][] {
  const statuses = new Map(lines.map(({ request, status }) => [request, status]));
  const lastCases = new Map<string, string>();
  const cases = new Map<string, Map<string, Sent>>();
  for (const line of lines) {
    if (line.status !== undefined) continue;
    const asked = line.asked || (lastCases.get(line.id) ?? '(nothing)');
    lastCases.set(line.id, asked);
    const ids = cases.getOrInsertComputed(asked, () => new Map());
    const sent = ids.getOrInsertComputed(line.id, () => ({ contents: [], status: undefined }));
    sent.contents.push(line.content);
    sent.status = statuses.get(line.request);
  }
  const counts = (ids: Map<string, Sent>): number[] =>
    Object.values(COLUMNS).map(countOf => ids.values().reduce((sum, sent) => sum + Number(countOf(sent)), 0));
  const rows = Array.from(cases, ([asked, ids]) => [asked, ...counts(ids)]);
  return [['ASKED FOR', ...Object.keys(COLUMNS)], ...rows];
}
