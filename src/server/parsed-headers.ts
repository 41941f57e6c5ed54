import { type CreateHeaders, createHeadersOf } from '../core/create-headers.ts';
import { fieldValues } from '../core/header-fields.ts';
import type { ByteText, RequestHeaders } from '../core/request.ts';
import type { TickBudget } from '../core/tick-budget.ts';
import { findHeaders, type HeadersReading, readHeaders } from './request-headers.ts';

/** Longest header section in the cache. Access tokens take one to two KiB. */
const CACHED_BYTES_MAX = 3 * 1024;
/** Maximum of header sections in the cache. */
const CACHED_MAX = 1_000;

/** A valid header section, and all that follows from it alone. */
export interface ParsedHeaders {
  readonly kind: 'headers';
  /** Its bytes. A header section of the same bytes has the same meaning, so it need not be read. */
  readonly section: ByteText;
  readonly headers: RequestHeaders;
  readonly create: CreateHeaders | undefined;
  /** The value of `traceparent`; undefined if the field is absent or repeated. */
  readonly traceparent: string | undefined;
}

/** The result of reading a header section. A header section in the cache needs no allocation. */
type ParsedHeadersReading =
  | ParsedHeaders
  | Exclude<HeadersReading, { kind: 'headers' }>
  /** The time for long header sections is spent. */
  | { kind: 'later' };

const LATER: ParsedHeadersReading = { kind: 'later' };
const BAD_HTTP: ParsedHeadersReading = { kind: 'invalid', error: 'badHttp' };

/** This field differs in each request, so the cache has header sections without it. */
const TRACEPARENT = /\r\n[tT]raceparent: ([!-~]+)(?=\r\n)/;

const ANY_TRACEPARENT = /\r\ntraceparent:/i;

/** The cache of a server for header sections, by their bytes. Clients repeat their header sections. */
export class HeadersCache {
  readonly #sections = new Map<ByteText, ParsedHeaders>();

  /** @param received with the empty line at its end @returns undefined if it is invalid */
  read(received: ByteText): ParsedHeaders | undefined {
    if (received.length > CACHED_BYTES_MAX) return parsedHeadersOf(received);
    const found = this.#sections.get(received);
    if (found !== undefined) return found;
    // A copy: a slice would keep all received bytes in memory.
    const section = Buffer.from(received, 'latin1').toString('latin1');
    const [, traceparent] = TRACEPARENT.exec(section) ?? [];
    if (traceparent !== undefined) {
      const others = section.replace(TRACEPARENT, '');
      if (ANY_TRACEPARENT.test(others)) return parsedHeadersOf(section);
      const headers = this.read(others);
      return headers && { ...headers, section, traceparent };
    }
    const added = parsedHeadersOf(section);
    if (added === undefined) return undefined;
    if (this.#sections.size >= CACHED_MAX) this.#sections.clear();
    this.#sections.set(section, added);
    return added;
  }
}

/** Reads the header sections of one connection. */
export class HeadersReader {
  readonly #cache: HeadersCache;
  /** Most clients repeat their header sections. A comparison takes less time than a lookup. */
  #latest: ParsedHeaders | undefined;

  constructor(cache: HeadersCache) {
    this.#cache = cache;
  }

  /**
   * @param scanned as in {@link findHeaders}
   * @param longHeaders time for header sections that are too long for the cache: each takes up to
   * 2 ms
   * @returns the header section that begins at `start`, or why there is none
   */
  read(received: ByteText, start: number, scanned: number, longHeaders: TickBudget): ParsedHeadersReading {
    const latest = this.#latest;
    // This takes half the time of `startsWith`.
    if (latest && received.slice(start, start + latest.section.length) === latest.section) return latest;
    const reading = findHeaders(received, start, scanned);
    if (reading.kind !== 'headers') return reading;
    if (reading.section.length > CACHED_BYTES_MAX && !longHeaders.hasTime()) return LATER;
    const parsed = this.#cache.read(reading.section);
    if (parsed === undefined) return BAD_HTTP;
    if (parsed.section.length <= CACHED_BYTES_MAX) this.#latest = parsed;
    return parsed;
  }
}

function parsedHeadersOf(section: ByteText): ParsedHeaders | undefined {
  const headers = readHeaders(section);
  if (headers === undefined) return undefined;
  const traceparents = fieldValues(headers.fields, 'traceparent');
  return {
    kind: 'headers',
    section,
    headers,
    create: createHeadersOf(headers),
    traceparent: traceparents.length === 1 ? traceparents[0] : undefined,
  };
}
