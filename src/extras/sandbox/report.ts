import { ERRORS } from '../../core/contract/errors.ts';
import { isErrorName, isOutcome } from '../../core/response.ts';
import { alignedColumns } from '../../formats/aligned-columns.ts';
import { type Attempt, EARLY_MAX_MS, endOf, type JudgedPlant, VERDICTS, type Verdict } from './judgement.ts';
import { preferencesOf } from './preferences.ts';

/** What to change in the client. */
const ADVICE: Record<Exclude<Verdict, 'ok'>, string> = {
  'stored twice under another id': 'choose the id before the first attempt, and send it in each attempt',
  'sent again under another id':
    'if only the response is lost, this stores the plant twice; choose the id before the first attempt, and send it in each attempt',
  'sent again with other content': 'make the body before the first attempt, and send it in each attempt',
  'gave up': 'the plant may be missing; send the same with its id again until there is a whole 200',
  'retried a final error': 'the same request fails again; report the error, and send nothing',
  'ignored Retry-After': 'wait as many seconds as it says, then send again',
};

/** Plants of one token that asked for the same faults and have the same verdict. */
interface Row {
  token: string;
  asked: string;
  verdict: Verdict;
  plants: JudgedPlant[];
}

/** @param labelOf the label of the token with a hash */
function rowsOf(plants: readonly JudgedPlant[], labelOf: (storedHash: string) => string): Row[] {
  const cases = Map.groupBy(plants, ({ asked, attempts }) => `${attempts[0]!.storedHash} ${asked}`);
  return [...cases.values()].flatMap(ofCase => {
    const { asked, attempts } = ofCase[0]!;
    const token = labelOf(attempts[0]!.storedHash);
    const rows = VERDICTS.map(verdict => ({
      token,
      asked,
      verdict,
      plants: ofCase.filter(({ verdicts }) => verdicts.includes(verdict)),
    }));
    return rows.filter(row => row.plants.length > 0);
  });
}

/** Makes JSON Lines; docs/sandbox.md describes the members. */
export function jsonReport(plants: readonly JudgedPlant[], labelOf: (storedHash: string) => string): string {
  const lines = rowsOf(plants, labelOf).map(row => {
    const ids = row.plants.map(({ attempts }) => attempts[0]!.id);
    const { token, asked, verdict } = row;
    return `${JSON.stringify({ token, asked, verdict, ids, example: courseOf(row.plants[0]!) })}\n`;
  });
  return lines.join('');
}

/** Makes the report for people: a table, then advice for each bad verdict. */
export function textReport(plants: readonly JudgedPlant[], labelOf: (storedHash: string) => string): string {
  const rows = rowsOf(plants, labelOf);
  const cells = rows.map(({ token, asked, verdict, plants }) => [
    token,
    asked || '(nothing)',
    verdict,
    plants.length,
    courseOf(plants[0]!),
  ]);
  const table = [['TOKEN', 'ASKED FOR', 'VERDICT', 'PLANTS', 'FIRST PLANT'], ...cells];
  const found = new Set(rows.map(({ verdict }) => verdict));
  const advice = Object.entries(ADVICE).filter(([verdict]) => found.has(verdict as Verdict));
  return [
    alignedColumns(table.map(row => row.join('\t')).join('\n')),
    ...advice.map(([verdict, text], index) => `${index === 0 ? '\n' : ''}${verdict}: ${text}`),
    '',
  ].join('\n');
}

/** A longer course shows this many attempts at its start, and the last one. */
const SHOWN_ATTEMPTS_MAX = 4;

/** What happened to a plant, such as `id 5: error 50301 with Retry-After: 1; 3 ms later 200`. */
function courseOf({ attempts, replacement }: JudgedPlant): string {
  const steps = attempts.map((attempt, index) => {
    const before = attempts[index - 1];
    return before === undefined ? responseText(attempt) : retryText(before, attempt);
  });
  const hidden = steps.length - SHOWN_ATTEMPTS_MAX - 1;
  if (hidden > 0) steps.splice(SHOWN_ATTEMPTS_MAX, hidden, `${hidden} more`);
  if (replacement?.kind === 'other id') steps.push(`then the same content as id ${replacement.id}`);
  if (replacement?.kind === 'invalid')
    steps.push(`then an invalid plant: error ${ERRORS[replacement.error].number}`);
  return `id ${attempts[0]!.id}: ${steps.join('; ')}`;
}

function retryText(before: Attempt, attempt: Attempt): string {
  const others = (['name', 'tag'] as const).filter(member => before[member] !== attempt[member]);
  const changed = others.length === 0 ? '' : ` with another ${others.join(' and ')}`;
  return `${durationText(attempt.at - endOf(before))} later${changed} ${responseText(attempt)}`;
}

function durationText(ms: number): string {
  return ms < 1000 ? `${Math.max(ms, 0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** What the client got. */
function responseText(attempt: Attempt): string {
  const { response } = attempt;
  if (response === undefined) return 'no response';
  const { result, received, retryAfterSeconds } = response;
  const status = isErrorName(result) ? `error ${ERRORS[result].number}` : '200';
  const retryAfter = retryAfterSeconds === undefined ? '' : ` with Retry-After: ${retryAfterSeconds}`;
  switch (received) {
    case 'whole':
      return `${status}${retryAfter}${waitText(attempt.asked, response.at - attempt.at)}`;
    case 'half':
      return `half of ${status}`;
    case 'nothing':
      return isOutcome(result) ? 'stored, but no response' : 'no response';
    case 'left':
      return isOutcome(result) ? 'stored, but the client had left' : 'the client had left';
  }
}

/** Says that a delay did not reach the timeout of the client. */
function waitText(asked: string, waitedMs: number): string {
  const { delayMs } = preferencesOf(asked);
  const isDelayed = delayMs > 0 && waitedMs >= delayMs - EARLY_MAX_MS;
  return isDelayed ? `, after waiting ${durationText(waitedMs)}` : '';
}
