import { type PlainCreate, plainCreateOf } from '../core/create-plant.ts';
import { fieldValues } from '../core/header-fields.ts';
import type { RequestHead } from '../core/request.ts';
import type { TickBudget } from '../core/tick-budget.ts';
import { findHead, type HeadReading, readHead } from './request-head.ts';

/** Longest head in the cache. Access tokens take one to two KiB. */
const HEAD_BYTES_MAX = 3 * 1024;
/** Maximum of heads in the cache. */
const HEADS_MAX = 1_000;

/** A valid head with all that depends on it alone. */
export interface KnownHead {
  readonly kind: 'head';
  /** Its bytes. A head of the same bytes has the same meaning, so it need not be read. */
  readonly section: string;
  readonly head: RequestHead;
  readonly create: PlainCreate | undefined;
  /** The value of `traceparent`; undefined if the field is absent or repeated. */
  readonly traceparent: string | undefined;
}

/** The result of reading a head. A head in the cache needs no allocation. */
type KnownHeadReading =
  | KnownHead
  | Exclude<HeadReading, { kind: 'head' }>
  /** The time for long heads is spent. */
  | { kind: 'later' };

const LATER: KnownHeadReading = { kind: 'later' };
const BAD_HTTP: KnownHeadReading = { kind: 'invalid', error: 'badHttp' };

/** This field differs in each request, so the cache has heads without it. */
const TRACEPARENT = /\r\n[tT]raceparent: ([!-~]+)(?=\r\n)/;

const ANY_TRACEPARENT = /\r\ntraceparent:/i;

/** The cache of heads, by their bytes. Clients repeat their heads. */
const known = new Map<string, KnownHead>();

/** @param received with the empty line at its end @returns undefined if it is invalid */
function knownHeadOf(received: string): KnownHead | undefined {
  if (received.length > HEAD_BYTES_MAX) return read(received);
  const found = known.get(received);
  if (found !== undefined) return found;
  // A copy: a slice would keep all received bytes in memory.
  const section = Buffer.from(received, 'latin1').toString('latin1');
  const [, traceparent] = TRACEPARENT.exec(section) ?? [];
  if (traceparent !== undefined) {
    const others = section.replace(TRACEPARENT, '');
    if (ANY_TRACEPARENT.test(others)) return read(section);
    const head = knownHeadOf(others);
    return head && { ...head, section, traceparent };
  }
  const added = read(section);
  if (added === undefined) return undefined;
  if (known.size >= HEADS_MAX) known.clear();
  known.set(section, added);
  return added;
}

/** Reads the heads of one connection. */
export class HeadReader {
  /** Most clients repeat their heads. A comparison takes less time than a lookup. */
  #latest: KnownHead | undefined;

  /**
   * @param scanned as in {@link findHead}
   * @param longHeads time for heads that are too long for the cache: each takes up to 2 ms
   * @returns the head that begins at `start`, or why there is none
   */
  read(received: string, start: number, scanned: number, longHeads: TickBudget): KnownHeadReading {
    const latest = this.#latest;
    // This takes half the time of `startsWith`.
    if (latest && received.slice(start, start + latest.section.length) === latest.section) return latest;
    const reading = findHead(received, start, scanned);
    if (reading.kind !== 'head') return reading;
    if (reading.section.length > HEAD_BYTES_MAX && !longHeads.hasTime()) return LATER;
    const known = knownHeadOf(reading.section);
    if (known === undefined) return BAD_HTTP;
    if (known.section.length <= HEAD_BYTES_MAX) this.#latest = known;
    return known;
  }
}

function read(section: string): KnownHead | undefined {
  const head = readHead(section);
  if (head === undefined) return undefined;
  const traceparents = fieldValues(head.fields, 'traceparent');
  return {
    kind: 'head',
    section,
    head,
    create: plainCreateOf(head),
    traceparent: traceparents.length === 1 ? traceparents[0] : undefined,
  };
}
