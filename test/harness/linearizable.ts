import { ERRORS } from '../../src/core/contract/errors.ts';
import { isSameContent, type NewPlant, newPlantJson } from '../../src/core/contract/plant.ts';
import type { LoggedRequest, LoggedResponse } from './client-log.ts';

/** A plant that was sent, and what its client knows of it. */
export interface HistoryRequest {
  plant: NewPlant;
  /** The revision that must be the latest, unless it has the same content; 0: there is no plant. */
  ifRevision?: number | undefined;
  /** All times are of one monotonic clock, in ms. */
  sentAt: number;
  respondedAt: number;
  result: RequestResult;
  /** Requests of one sender take effect in the order in which they were sent, also if they overlap. */
  sender?: number;
  /** The id of its token, if it is known. A revision is stored with that of the request that created it. */
  recordedBy?: number;
}

export type RequestResult =
  | { kind: 'confirmed'; revision: number; outcome: string | undefined }
  /** It met another content. As after any other rejection, it is never stored. */
  | { kind: 'idTaken'; reason: string }
  /** It met this revision, and another content; 0: it met no plant. */
  | { kind: 'plantChanged'; revision: number; reason: string }
  | { kind: 'rejected'; reason: string }
  /** It may be stored or not. */
  | { kind: 'unknown'; reason: string };

/** A revision that is stored in the end. */
export interface HistoryRevision {
  plant: NewPlant;
  revision: number;
  recordedBy: number;
  /** When it could be seen first, if that is known. */
  storedAt?: number;
}

/** A request with its content as text. */
interface Sent extends HistoryRequest {
  content: string;
}

/** A request whose result names the latest revision. */
interface Named extends Sent {
  /** 0: there was no plant. */
  revision: number;
  /** Whether it created its revision. */
  writes: boolean;
}

interface Confirmed extends Named {
  outcome: string | undefined;
}

/** A revision that is stored, or that a response named. */
interface Revision {
  number: number;
  content: string;
  /** Undefined if only a response named it. */
  stored: HistoryRevision | undefined;
  /** The confirmed request that created it. Without one, an unknown request must have. */
  writer: Confirmed | undefined;
  /** The earliest response that named this revision or a later one: it was stored by then. */
  seenBy: Named | undefined;
}

/** All that is known of one id. */
interface History {
  id: bigint;
  confirmed: readonly Confirmed[];
  /** Those for which another revision was the latest. */
  changed: readonly Named[];
  /** Requests that may have been stored or not, in the order in which they were sent. */
  unknown: readonly Sent[];
  /** Requests that are never stored. */
  rejected: readonly Sent[];
  /** By their numbers, in order. */
  revisions: ReadonlyMap<number, Revision>;
  /** Undefined if only the responses are known. */
  stored: readonly HistoryRevision[] | undefined;
}

const CONTENT_CHARACTERS_MAX = 120;

/** As {@link requestFaults}, of the requests that clients have logged. After a 5xx a plant is unknown. */
export function historyFaults(log: readonly LoggedRequest[], stored?: readonly HistoryRevision[]): string[] {
  const inHistory = ({
    plant,
    ifRevision,
    sentAt,
    respondedAt,
    response,
  }: LoggedRequest): HistoryRequest => ({
    plant,
    ifRevision,
    sentAt,
    respondedAt,
    result: resultOf(response),
  });
  return requestFaults(log.map(inHistory), stored);
}

function resultOf(response: LoggedResponse | undefined): RequestResult {
  if (response === undefined) return { kind: 'unknown', reason: 'no response' };
  const { status, body, revision, outcome } = response;
  if (status === 200) return { kind: 'confirmed', revision, outcome };
  const reason = `status ${status}`;
  if (status >= 500) return { kind: 'unknown', reason };
  if (status === ERRORS.plantChanged.status) return { kind: 'plantChanged', revision, reason };
  const isIdTaken = body.startsWith(`{"error":${ERRORS.idTaken.number},`);
  return { kind: isIdTaken ? 'idTaken' : 'rejected', reason };
}

/**
 * Checks that the results are linearizable: each request took effect at one moment between its
 * sending and its response. Each id is a register with numbered revisions:
 *
 * - `created` is revision 1, `revised` a later one, and no number is given twice or to two contents;
 * - a request that was sent after a response has no lower revision than this response, and a higher
 *   one if it created it. So `unchanged` names a revision that was the latest at some moment between the two;
 * - the requests of one sender have the order in which they were sent;
 * - a revision that no confirmed request created is from an unknown one of the same content and token.
 *   Each created at most one revision, after it was sent, perhaps much later;
 * - a rejected request created none; and one whose id was taken met another content;
 * - a request with a condition created only the revision after the one that it names, also if it is
 *   unknown. If it met another one, that was the latest at some moment, as for `unchanged`;
 * - each confirmed revision is stored, the numbers have no gap, and no revision repeats the one before it;
 * - if it is known when a revision was stored, its request was sent before, and all responses came later.
 *
 * The numbers give the order of the revisions. So comparing pairs of requests finds each violation,
 * in one sweep over the sorted requests. Two rejections of one id are not compared with each other.
 *
 * @param requests those of all clients of one process, whose monotonic clock gives the times
 * @param stored all revisions at the end, those of an id in order, if they are known
 * @returns one line for each fault, with the id and the requests
 */
export function requestFaults(
  requests: readonly HistoryRequest[],
  stored?: readonly HistoryRevision[],
): string[] {
  const requestsOf = Map.groupBy(requests, ({ plant }) => plant.id);
  const storedOf = Map.groupBy(stored ?? [], ({ plant }) => plant.id);
  const faults: string[] = [];
  for (const id of new Set([...requestsOf.keys(), ...storedOf.keys()])) {
    const ofStore = stored === undefined ? undefined : (storedOf.get(id) ?? []);
    faults.push(...faultsOfId(id, requestsOf.get(id) ?? [], ofStore));
  }
  return faults;
}

/** As {@link requestFaults}, of the requests of one id. */
export function faultsOfId(
  id: bigint,
  requests: readonly HistoryRequest[],
  stored?: readonly HistoryRevision[],
): string[] {
  const history = historyOf(id, requests, stored);
  return CHECKS.flatMap(check => [...check(history)]);
}

const CHECKS = [
  wrongNumbers,
  wrongStored,
  wrongOrder,
  wrongOrderOfSenders,
  wrongTimes,
  wrongOrigins,
  wrongRejections,
  wrongConditions,
];

/** The simulation checks each request many times. */
const contents = new WeakMap<HistoryRequest, string>();

function contentOf(request: HistoryRequest): string {
  return contents.getOrInsertComputed(request, ({ plant }) => newPlantJson(plant));
}

function historyOf(
  id: bigint,
  requests: readonly HistoryRequest[],
  stored: readonly HistoryRevision[] | undefined,
): History {
  const confirmed: Confirmed[] = [];
  const changed: Named[] = [];
  const unknown: Sent[] = [];
  const rejected: Sent[] = [];
  const byNumber = new Map<number, Revision>();
  const add = (number: number, content: string, row?: HistoryRevision): void => {
    if (!byNumber.has(number))
      byNumber.set(number, { number, content, stored: row, writer: undefined, seenBy: undefined });
  };
  for (const row of stored ?? []) add(row.revision, newPlantJson(row.plant), row);
  for (const request of requests) {
    const { result } = request;
    const sent = { ...request, content: contentOf(request) };
    if (result.kind === 'unknown') unknown.push(sent);
    else if (result.kind !== 'confirmed') {
      rejected.push(sent);
      if (result.kind === 'plantChanged') changed.push({ ...sent, revision: result.revision, writes: false });
    } else {
      const { revision, outcome } = result;
      confirmed.push(Object.assign(sent, { revision, outcome, writes: outcome !== 'unchanged' }));
      add(revision, sent.content);
    }
  }
  for (const each of confirmed) if (each.writes) byNumber.get(each.revision)!.writer ??= each;

  const descending = [...confirmed, ...changed].toSorted((one, other) => other.revision - one.revision);
  const inOrder = [...byNumber].sort(([one], [other]) => one - other);
  let seenBy: Named | undefined;
  let next = 0;
  for (const [number, revision] of inOrder.toReversed()) {
    for (; (descending[next]?.revision ?? -1) >= number; next++) {
      if (seenBy === undefined || descending[next]!.respondedAt < seenBy.respondedAt)
        seenBy = descending[next];
    }
    revision.seenBy = seenBy;
  }
  unknown.sort(bySending);
  return { id, confirmed, changed, unknown, rejected, revisions: new Map(inOrder), stored };
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

/** Confirmed plants that are not stored, and stored revisions that do not follow one another. */
function* wrongStored({ id, confirmed, revisions, stored }: History): Generator<string> {
  if (stored === undefined) return;
  for (const each of confirmed) {
    const revision = revisions.get(each.revision)!;
    if (revision.stored === undefined) yield `lost: id ${id}: ${shown(each)}, which is missing`;
    else if (revision.content !== each.content)
      yield `lost: id ${id}: ${shown(each)}, which is ${shortened(revision.content)}`;
    else if (each.writes && !hasTokenOf(each, revision))
      yield `wrong token: id ${id}: ${shown(each)}, which is recorded by ${revision.stored.recordedBy}`;
  }
  for (const [index, { plant, revision }] of stored.entries()) {
    if (revision !== index + 1)
      yield `gap: ${shortened(newPlantJson(plant))} is revision ${revision} of id ${id}, after ${index} others`;
    const before = stored[index - 1];
    if (before !== undefined && isSameContent(before.plant, plant))
      yield `stored again: revision ${revision} of id ${id} repeats ${shortened(newPlantJson(plant))}`;
  }
}

/** Whether the revision can be that of the request, by its token. */
function hasTokenOf({ recordedBy }: Sent, { stored }: Revision): boolean {
  return recordedBy === undefined || stored === undefined || recordedBy === stored.recordedBy;
}

/** Requests with a revision that was out of date before they were sent. */
function* wrongOrder({ id, confirmed, changed }: History): Generator<string> {
  const named: readonly Named[] = [...confirmed, ...changed];
  const responded = named.toSorted((one, other) => one.respondedAt - other.respondedAt);
  let latest: Named | undefined;
  let next = 0;
  for (const each of named.toSorted(bySending)) {
    for (; responded[next]!.respondedAt < each.sentAt; next++) {
      if (latest === undefined || responded[next]!.revision > latest.revision) latest = responded[next]!;
    }
    if (latest !== undefined && isOutdated(each, latest))
      yield `out of order: id ${id}: ${shown(each)} was sent after the response to ${shown(latest)}`;
  }
}

/** Requests that took effect before an earlier one of the same sender. */
function* wrongOrderOfSenders({ id, confirmed, changed }: History): Generator<string> {
  const latestOf = new Map<number, Named>();
  for (const each of [...confirmed, ...changed].toSorted(bySending)) {
    if (each.sender === undefined) continue;
    const latest = latestOf.get(each.sender);
    if (latest !== undefined && isOutdated(each, latest))
      yield `out of order: id ${id}: ${shown(each)} was sent after ${shown(latest)} by the same sender`;
    if (latest === undefined || each.revision > latest.revision) latestOf.set(each.sender, each);
  }
}

/** Whether a request cannot have taken effect after one that named the latest revision. */
function isOutdated(request: Named, { revision }: Named): boolean {
  return request.revision < revision || (request.writes && request.revision === revision);
}

/**
 * Confirmed requests that do not fit the times of the stored revisions. A revision that replaces
 * another one may be seen by statements while its own request is in flight. Until a response shows
 * it, a request may still be `unchanged` as the revision before it.
 */
function* wrongTimes({ id, confirmed, revisions }: History): Generator<string> {
  for (const each of confirmed) {
    const storedAt = storedAtOf(revisions.get(each.revision)!);
    if (storedAt === undefined) continue;
    if (each.respondedAt < storedAt)
      yield `confirmed too early: id ${id}: ${shown(each)} was stored ${timeText(storedAt)}`;
    if (each.writes && storedAt < each.sentAt)
      yield `stored too early: id ${id}: ${shown(each)} was stored ${timeText(storedAt)}`;
  }
}

function storedAtOf({ stored }: Revision): number | undefined {
  return stored?.storedAt;
}

/**
 * Finds a sender for each revision that no confirmed request created. The unknown requests of a
 * content are assigned in order: of two revisions, the earlier one was also seen first.
 */
function* wrongOrigins({ id, unknown, rejected, revisions }: History): Generator<string> {
  const orphans = [...revisions.values()].filter(({ writer }) => writer === undefined);
  if (orphans.length === 0) return;
  const senders = Map.groupBy(unknown, ({ content }) => content);
  for (const orphan of orphans) {
    const { number, content, seenBy } = orphan;
    const ofContent = senders.get(content) ?? [];
    const seenAt = Math.min(seenBy?.respondedAt ?? Infinity, storedAtOf(orphan) ?? Infinity);
    const fitting = ofContent.filter(
      each => hasTokenOf(each, orphan) && [undefined, number - 1].includes(each.ifRevision),
    );
    // One with a condition cannot have created any other revision, so it is assigned first.
    const conditional = fitting.find(each => each.ifRevision !== undefined && each.sentAt <= seenAt);
    const sender = conditional ?? fitting[0];
    const what = `revision ${number} of ${shortened(content)}`;
    if (sender === undefined) {
      const ghost = rejected.find(each => each.content === content && hasTokenOf(each, orphan));
      if (ghost !== undefined) yield `ghost: ${what}: id ${id} has it, after ${shown(ghost)}`;
      else yield `stranger: ${what}: no request can have created it for id ${id}${seenText(seenBy)}`;
    } else if (seenAt < sender.sentAt)
      yield `stored too early: ${what}: id ${id} had it before ${shown(sender)} was sent${seenText(seenBy)}`;
    else ofContent.splice(ofContent.indexOf(sender), 1);
  }
}

/** Requests whose id was taken, though no other content can have been the latest at that time. */
function* wrongRejections(history: History): Generator<string> {
  const { id, unknown, rejected, revisions } = history;
  const taken = rejected.filter(({ result }) => result.kind === 'idTaken');
  if (taken.length === 0) return;
  const spans = spansOf(history);
  for (const each of taken) {
    const isOther = ({ content }: { content: string }): boolean => content !== each.content;
    const isPossible = spans.some(
      span => isOther(span) && span.since <= each.respondedAt && span.until >= each.sentAt,
    );
    if (isPossible) continue;
    const other = revisions.values().find(isOther)?.writer ?? unknown.find(isOther);
    const otherText = other === undefined ? '' : `; compare ${shown(other)}`;
    yield `wrongly rejected: id ${id}: ${shown(each)}, when no other content was stored${otherText}`;
  }
}

/**
 * Requests that created a revision against their condition, or met one that fits it. Whether a
 * revision that a request met was the latest, the other checks have found out.
 */
function* wrongConditions({ id, confirmed, changed, revisions, stored }: History): Generator<string> {
  for (const each of confirmed) {
    const { writes, revision, ifRevision } = each;
    if (writes && ifRevision !== undefined && revision !== ifRevision + 1)
      yield `wrong condition: id ${id}: ${shown(each)}, if the latest is revision ${ifRevision}`;
  }
  for (const each of changed) {
    const met = revisions.get(each.revision);
    if (stored !== undefined && each.revision > 0 && met?.stored === undefined)
      yield `lost: id ${id}: revision ${each.revision} is missing, which ${shown(each)} met`;
    else if (
      each.revision === each.ifRevision ||
      each.ifRevision === undefined ||
      met?.content === each.content
    )
      yield `wrongly rejected: id ${id}: ${shown(each)} for revision ${each.ifRevision}, and met revision ${each.revision}`;
    else if (each.respondedAt < (met === undefined ? -Infinity : (storedAtOf(met) ?? -Infinity)))
      yield `confirmed too early: id ${id}: ${shown(each)} met revision ${each.revision}, which was stored later`;
  }
}

interface Span {
  content: string;
  since: number;
  until: number;
}

/** The longest time in which each revision can have been the latest. */
function spansOf({ confirmed, changed, unknown, revisions, stored }: History): Span[] {
  const lastNamed = new Map<number, number>();
  for (const { revision, sentAt } of [...confirmed, ...changed])
    lastNamed.set(revision, Math.max(sentAt, lastNamed.get(revision) ?? -Infinity));
  let earliest = -Infinity;
  const inOrder = [...revisions.values()];
  const spans = inOrder.map((revision, index) => {
    const { number, content, writer } = revision;
    const sender = writer ?? unknown.find(each => each.content === content);
    const since = Math.max(earliest, storedAtOf(revision) ?? sender?.sentAt ?? -Infinity);
    // Whatever was sent for this revision took effect before the next one.
    earliest = Math.max(since, lastNamed.get(number) ?? -Infinity);
    return { content, since, until: inOrder[index + 1]?.seenBy?.respondedAt ?? Infinity };
  });
  // If the stored revisions are not known, any unknown request may have been stored.
  if (stored !== undefined) return spans;
  return [...spans, ...unknown.map(({ content, sentAt }) => ({ content, since: sentAt, until: Infinity }))];
}

function bySending(one: Sent, other: Sent): number {
  return one.sentAt - other.sentAt;
}

function seenText(seenBy: Named | undefined): string {
  return seenBy === undefined ? '' : `; the response to ${shown(seenBy)} shows it`;
}

function shown({ content, sentAt, respondedAt, result }: Sent): string {
  const text =
    result.kind === 'confirmed' ? `${result.outcome} as revision ${result.revision}` : result.reason;
  const times = `sent ${timeText(sentAt)}, response ${timeText(respondedAt)}`;
  return `${shortened(content)} (${text}, ${times})`;
}

function timeText(atMs: number): string {
  return `at ${atMs.toFixed(3)} ms`;
}

function shortened(content: string): string {
  return content.length > CONTENT_CHARACTERS_MAX ? `${content.slice(0, CONTENT_CHARACTERS_MAX)}…` : content;
}
