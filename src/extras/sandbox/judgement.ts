import { ERRORS } from '../../core/contract/errors.ts';
import { isErrorName, isOutcome } from '../../core/response.ts';
import { preferencesOf } from './preferences.ts';
import type { RecordedInvalid, RecordedLine, RecordedRequest, RecordedResponse } from './sandbox-files.ts';

/** The worst come first, then those that follow from them. */
export const VERDICTS = [
  'stored twice under another id',
  'sent again under another id',
  'sent again with other content',
  'gave up',
  'retried a final error',
  'ignored Retry-After',
  'ok',
] as const;
export type Verdict = (typeof VERDICTS)[number];

/** A request with its response; undefined: the connection ended before. */
export interface Attempt extends RecordedRequest {
  response: RecordedResponse | undefined;
}

/** What a client sent instead of the same plant again. */
export type Replacement =
  | { kind: 'other id'; id: string }
  | { kind: 'invalid'; error: RecordedInvalid['error'] };

/** A plant that a client wanted to store, with all its attempts. */
export interface JudgedPlant {
  /** The faults for which the first attempt asked. */
  asked: string;
  attempts: Attempt[];
  replacement: Replacement | undefined;
  verdicts: Verdict[];
}

/** Timers can end a little early. */
export const EARLY_MAX_MS = 10;

/**
 * Judges how clients behaved. A plant begins with the first request for its id, and again after a
 * 200, with other faults, or with other content after a final error, which is a correction.
 *
 * @returns the plants in the order of their first requests
 */
export function judgedPlants(lines: readonly RecordedLine[]): JudgedPlant[] {
  const plants = sentPlants(lines);
  const found = replacements(plants, lines);
  return plants.map(attempts => {
    const replacement = found.get(attempts);
    return { asked: attempts[0]!.asked, attempts, replacement, verdicts: verdictsOf(attempts, replacement) };
  });
}

/** @returns the attempts of each plant */
function sentPlants(lines: readonly RecordedLine[]): Attempt[][] {
  const responses = new Map(lines.filter(line => line.kind === 'response').map(line => [line.request, line]));
  const plants: Attempt[][] = [];
  const latest = new Map<string, Attempt[]>();
  for (const line of lines) {
    if (line.kind !== 'request') continue;
    const attempt = { ...line, response: responses.get(line.request) };
    const key = `${line.storedHash} ${line.id}`;
    const plant = latest.get(key);
    if (plant !== undefined && isContinued(plant, attempt)) plant.push(attempt);
    else {
      const attempts = [attempt];
      plants.push(attempts);
      latest.set(key, attempts);
    }
  }
  return plants;
}

function isContinued(plant: readonly Attempt[], attempt: Attempt): boolean {
  const last = plant.at(-1)!;
  if (!isSameCase(plant[0]!, attempt)) return false;
  switch (knowledgeOf(last, attempt.at)) {
    case 'stored':
      return false;
    case 'rejected':
      return contentOf(last) === contentOf(attempt);
    case 'unknown':
      return true;
  }
}

/** A retry may leave out the preference. */
function isSameCase(first: Attempt, { asked }: { asked: string }): boolean {
  return asked === '' || asked === first.asked;
}

/** What a client knows of an attempt at a time. It may have sent the plant again before the response. */
function knowledgeOf({ response }: Attempt, at = Infinity): 'stored' | 'rejected' | 'unknown' {
  if (response?.received !== 'whole' || at < response.at) return 'unknown';
  if (isOutcome(response.result)) return 'stored';
  return isErrorName(response.result) && !ERRORS[response.result].retry ? 'rejected' : 'unknown';
}

function contentOf({ name, tag }: Attempt): string {
  return `${name} ${tag}`;
}

/** One more attempt is enough if the faults never end. */
function isGivenUp(attempts: readonly Attempt[]): boolean {
  if (attempts.some(attempt => knowledgeOf(attempt) !== 'unknown')) return false;
  return attempts.length === 1 || preferencesOf(attempts[0]!.asked).times !== Infinity;
}

/** Finds what clients sent instead of plants that they gave up. A request replaces one plant at most. */
function replacements(plants: readonly Attempt[][], lines: readonly RecordedLine[]) {
  const contentKey = (attempt: Attempt): string => `${attempt.storedHash} ${contentOf(attempt)}`;
  const firsts = plants.map(([first]) => first!);
  const plantsLeft = Map.groupBy(firsts, contentKey);
  const invalid = lines.filter(line => line.kind === 'invalid');
  const invalidLeft = Map.groupBy(invalid, ({ storedHash }) => storedHash);
  const found = new Map<readonly Attempt[], Replacement>();
  for (const attempts of plants.filter(isGivenUp)) {
    const [first, last] = [attempts[0]!, attempts.at(-1)!];
    const isLater = (line: { at: number; asked: string }): boolean =>
      line.at >= endOf(last) && isSameCase(first, line);
    const isOther = (line: Attempt): boolean => line.id !== last.id && isLater(line);
    const other = taken(plantsLeft.get(contentKey(last)), isOther);
    const faulty = other === undefined ? taken(invalidLeft.get(last.storedHash), isLater) : undefined;
    if (other !== undefined) found.set(attempts, { kind: 'other id', id: other.id });
    if (faulty !== undefined) found.set(attempts, { kind: 'invalid', error: faulty.error });
  }
  return found;
}

/** Removes the first item that matches. */
function taken<Item>(items: Item[] = [], matches: (item: Item) => boolean): Item | undefined {
  const index = items.findIndex(matches);
  return index === -1 ? undefined : items.splice(index, 1)[0];
}

/** When an attempt ended for its client, as far as it is known. */
export function endOf({ at, response }: Attempt): number {
  return response === undefined || response.received === 'left' ? at : response.at;
}

function verdictsOf(attempts: readonly Attempt[], replacement: Replacement | undefined): Verdict[] {
  const verdicts = new Set<Verdict>();
  for (const [index, attempt] of attempts.slice(1).entries()) {
    const before = attempts[index]!;
    if (knowledgeOf(before, attempt.at) === 'rejected') verdicts.add('retried a final error');
    if (contentOf(before) !== contentOf(attempt)) verdicts.add('sent again with other content');
    if (isTooSoon(before, attempt)) verdicts.add('ignored Retry-After');
  }
  if (isGivenUp(attempts)) verdicts.add(givenUpVerdict(attempts, replacement));
  return verdicts.size === 0 ? ['ok'] : [...verdicts];
}

function isTooSoon({ response }: Attempt, { at }: Attempt): boolean {
  if (response?.received !== 'whole' || response.retryAfterSeconds === undefined) return false;
  return at >= response.at && at < response.at + response.retryAfterSeconds * 1000 - EARLY_MAX_MS;
}

function givenUpVerdict(attempts: readonly Attempt[], replacement: Replacement | undefined): Verdict {
  if (replacement === undefined) return 'gave up';
  if (replacement.kind === 'invalid') return 'sent again with other content';
  const isStored = attempts.some(({ response }) => response !== undefined && isOutcome(response.result));
  return isStored ? 'stored twice under another id' : 'sent again under another id';
}
