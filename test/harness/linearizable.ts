import type { PlantRevision } from '../../src/core/commit/plant-revision.ts';
import { ERRORS } from '../../src/core/contract/errors.ts';
import { newPlantJson } from '../../src/core/contract/plant.ts';
import type { LoggedRequest } from './client-log.ts';

/** A request with its content as text, which is made once. */
interface Sent extends LoggedRequest {
  content: string;
}

/** A request with the response 200. */
interface Confirmed extends Sent {
  revision: number;
  outcome: string | undefined;
  /** Whether it created its revision. */
  writes: boolean;
}

/** A revision that is stored, or that a response named. */
interface Revision {
  number: number;
  content: string;
  /** The confirmed request that created it. Without one, an unknown request must have. */
  writer: Confirmed | undefined;
  /** The earliest response that named this revision or a later one: it was stored by then. */
  seenBy: Confirmed | undefined;
}

/** All that is known of one id. */
interface History {
  id: bigint;
  confirmed: readonly Confirmed[];
  /** Requests that may have been stored or not, in the order in which they were sent. */
  unknown: readonly Sent[];
  /** Requests with a 4xx, which are never stored. */
  rejected: readonly Sent[];
  /** In order. */
  revisions: readonly Revision[];
  /** Whether the stored revisions are known, not only those of the responses. */
  isComplete: boolean;
}

const CONTENT_CHARACTERS_MAX = 120;

/**
 * Checks that the responses are linearizable: each request took effect at one moment between its
 * sending and its response. Each id is a register with numbered revisions:
 *
 * - `created` is revision 1, `revised` a later one, and no number is given twice or to two contents;
 * - a request that was sent after a response has no lower revision than this response, and a higher
 *   one if it created it. So `unchanged` names a revision that was the latest at some moment between the two;
 * - a revision that no confirmed request created is from an unknown one of the same content (no
 *   response, or 5xx). Each created at most one revision, after it was sent, perhaps much later;
 * - a rejected request created none; and one whose id was taken met another content.
 *
 * The numbers give the order of the revisions. So comparing pairs of requests finds each violation,
 * in one sweep over the sorted requests. Two rejections of one id are not compared with each other.
 *
 * @param log the requests of all clients of one process, whose monotonic clock gives the times
 * @param stored all revisions at the end, if they are known
 * @returns one line for each fault, with the id and the requests
 */
export function historyFaults(log: readonly LoggedRequest[], stored?: readonly PlantRevision[]): string[] {
  const requestsOf = Map.groupBy(log, ({ plant }) => plant.id);
  const storedOf = Map.groupBy(stored ?? [], ({ plant }) => plant.id);
  const faults: string[] = [];
  for (const id of new Set([...requestsOf.keys(), ...storedOf.keys()])) {
    const ofStore = stored === undefined ? undefined : (storedOf.get(id) ?? []);
    const history = historyOf(id, requestsOf.get(id) ?? [], ofStore);
    for (const check of [wrongNumbers, wrongOrder, wrongOrigins, wrongRejections]) {
      faults.push(...check(history));
    }
  }
  return faults;
}

function historyOf(id: bigint, requests: readonly LoggedRequest[], stored?: PlantRevision[]): History {
  const confirmed: Confirmed[] = [];
  const unknown: Sent[] = [];
  const rejected: Sent[] = [];
  const revisions = new Map<number, Revision>();
  const add = (number: number, content: string): void => {
    if (!revisions.has(number))
      revisions.set(number, { number, content, writer: undefined, seenBy: undefined });
  };
  for (const { plant, revision } of stored ?? []) add(revision, newPlantJson(plant));
  for (const request of requests) {
    const sent = { ...request, content: newPlantJson(request.plant) };
    const { response } = request;
    if (response === undefined || response.status >= 500) unknown.push(sent);
    else if (response.status >= 400) rejected.push(sent);
    else if (response.status === 200) {
      const { revision, outcome } = response;
      confirmed.push({ ...sent, revision, outcome, writes: outcome !== 'unchanged' });
      add(revision, sent.content);
    }
  }
  for (const each of confirmed) if (each.writes) revisions.get(each.revision)!.writer ??= each;

  const descending = confirmed.toSorted((one, other) => other.revision - one.revision);
  const inOrder = [...revisions.values()].sort((one, other) => one.number - other.number);
  let seenBy: Confirmed | undefined;
  let next = 0;
  for (const revision of inOrder.toReversed()) {
    for (; (descending[next]?.revision ?? -1) >= revision.number; next++) {
      if (seenBy === undefined || descending[next]!.respondedAt < seenBy.respondedAt)
        seenBy = descending[next];
    }
    revision.seenBy = seenBy;
  }
  unknown.sort(bySending);
  return { id, confirmed, unknown, rejected, revisions: inOrder, isComplete: stored !== undefined };
}

/** Numbers that do not fit the outcome, and numbers with two contents or two creators. */
function* wrongNumbers({ id, confirmed }: History): Generator<string> {
  const named = new Map<number, Confirmed>();
  const created = new Map<number, Confirmed>();
  for (const each of confirmed) {
    const { revision, outcome, writes, content } = each;
    const isRight = outcome === 'unchanged' || outcome === (revision === 1 ? 'created' : 'revised');
    if (!isRight || !(revision >= 1)) yield `wrong outcome: id ${id}: ${shown(each)}`;
    const other = named.get(revision) ?? each;
    if (other.content !== content)
      yield `two contents: revision ${revision} of id ${id} is named by ${shown(other)} and ${shown(each)}`;
    named.set(revision, other);
    if (!writes) continue;
    const creator = created.get(revision) ?? each;
    if (creator !== each)
      yield `made twice: revision ${revision} of id ${id} by ${shown(creator)} and ${shown(each)}`;
    created.set(revision, creator);
  }
}

/** Requests with a revision that was out of date before they were sent. */
function* wrongOrder({ id, confirmed }: History): Generator<string> {
  const responded = confirmed.toSorted((one, other) => one.respondedAt - other.respondedAt);
  let latest: Confirmed | undefined;
  let next = 0;
  for (const each of confirmed.toSorted(bySending)) {
    for (; responded[next]!.respondedAt < each.sentAt; next++) {
      if (latest === undefined || responded[next]!.revision > latest.revision) latest = responded[next]!;
    }
    if (latest === undefined) continue;
    if (each.revision < latest.revision || (each.writes && each.revision === latest.revision))
      yield `out of order: id ${id}: ${shown(each)} was sent after the response to ${shown(latest)}`;
  }
}

/**
 * Finds a sender for each revision that no confirmed request created. The unknown requests of a
 * content are assigned in order: of two revisions, the earlier one was also seen first.
 */
function* wrongOrigins({ id, unknown, rejected, revisions }: History): Generator<string> {
  const orphans = revisions.filter(({ writer }) => writer === undefined);
  if (orphans.length === 0) return;
  const senders = Map.groupBy(unknown, ({ content }) => content);
  const assigned = new Map<string, number>();
  for (const { number, content, seenBy } of orphans) {
    const next = assigned.get(content) ?? 0;
    const sender = senders.get(content)?.[next];
    const what = `revision ${number} of ${shortened(content)}`;
    if (sender === undefined) {
      const ghost = rejected.find(each => each.content === content);
      if (ghost !== undefined) yield `ghost: ${what}: id ${id} has it, after ${shown(ghost)}`;
      else yield `stranger: ${what}: no request can have created it for id ${id}${seenText(seenBy)}`;
    } else if (seenBy !== undefined && seenBy.respondedAt < sender.sentAt)
      yield `stored too early: ${what}: id ${id} had it before ${shown(sender)} was sent${seenText(seenBy)}`;
    else assigned.set(content, next + 1);
  }
}

/** Requests whose id was taken, though no other content can have been the latest at that time. */
function* wrongRejections(history: History): Generator<string> {
  const { id, unknown, rejected, revisions } = history;
  const takenBody = `{"error":${ERRORS.idTaken.number},`;
  const taken = rejected.filter(({ response }) => response!.body.startsWith(takenBody));
  if (taken.length === 0) return;
  const spans = spansOf(history);
  for (const each of taken) {
    const isOther = ({ content }: { content: string }): boolean => content !== each.content;
    const isPossible = spans.some(
      span => isOther(span) && span.since <= each.respondedAt && span.until >= each.sentAt,
    );
    if (isPossible) continue;
    const other = revisions.find(isOther)?.writer ?? unknown.find(isOther);
    const otherText = other === undefined ? '' : `; compare ${shown(other)}`;
    yield `wrongly rejected: id ${id}: ${shown(each)}, when no other content was stored${otherText}`;
  }
}

interface Span {
  content: string;
  since: number;
  until: number;
}

/** The longest time in which each revision can have been the latest. */
function spansOf({ confirmed, unknown, revisions, isComplete }: History): Span[] {
  const lastNamed = new Map<number, number>();
  for (const { revision, sentAt } of confirmed)
    lastNamed.set(revision, Math.max(sentAt, lastNamed.get(revision) ?? -Infinity));
  let earliest = -Infinity;
  const spans = revisions.map(({ number, content, writer }, index) => {
    const sender = writer ?? unknown.find(each => each.content === content);
    const since = Math.max(earliest, sender?.sentAt ?? -Infinity);
    // Whatever was sent for this revision took effect before the next one.
    earliest = Math.max(since, lastNamed.get(number) ?? -Infinity);
    return { content, since, until: revisions[index + 1]?.seenBy?.respondedAt ?? Infinity };
  });
  // If the stored revisions are not known, any unknown request may have been stored.
  if (isComplete) return spans;
  return [...spans, ...unknown.map(({ content, sentAt }) => ({ content, since: sentAt, until: Infinity }))];
}

function bySending(one: Sent, other: Sent): number {
  return one.sentAt - other.sentAt;
}

function seenText(seenBy: Confirmed | undefined): string {
  return seenBy === undefined ? '' : `; the response to ${shown(seenBy)} shows it`;
}

function shown({ content, sentAt, respondedAt, response }: Sent): string {
  const result =
    response?.status === 200
      ? `${response.outcome} as revision ${response.revision}`
      : `status ${response?.status ?? 'unknown'}`;
  const times = `sent at ${sentAt.toFixed(3)} ms, response at ${respondedAt.toFixed(3)} ms`;
  return `${shortened(content)} (${result}, ${times})`;
}

function shortened(content: string): string {
  return content.length > CONTENT_CHARACTERS_MAX ? `${content.slice(0, CONTENT_CHARACTERS_MAX)}…` : content;
}
