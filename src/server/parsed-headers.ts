import { type CreateHeaders, createHeadersOf } from '../core/create-headers.ts';
import type { IterationBudget } from '../core/iteration-budget.ts';
import type { ByteText, RequestHeaders } from '../core/request.ts';
import { findHeaders, type HeadersReading, readHeaders } from './request-headers.ts';

/** Longest header section in the cache. Access tokens take one to two KiB. */
const CACHED_MAX_BYTES = 3 * 1024;
/** Maximum of header sections in the cache. */
const CACHED_MAX = 1_000;

/** A valid header section, and all that follows from it alone. */
export interface ParsedHeaders {
  readonly kind: 'headers';
  /** Its bytes. A header section of the same bytes has the same meaning, so it need not be read. */
  readonly section: ByteText;
  readonly headers: RequestHeaders;
  readonly create: CreateHeaders | undefined;
}

/** The result of reading a header section. A header section in the cache needs no allocation. */
type ParsedHeadersReading =
  | ParsedHeaders
  | Exclude<HeadersReading, { kind: 'headers' }>
  /** The time for long header sections is spent. */
  | { kind: 'later' };

const LATER: ParsedHeadersReading = { kind: 'later' };
const BAD_HTTP: ParsedHeadersReading = { kind: 'invalid', error: 'badHttp' };

/** The cache of a server for header sections, by their bytes. Clients repeat their header sections. */
export class HeadersCache {
  readonly #sections = new Map<ByteText, ParsedHeaders>();
  /** The varying field in the form in which most clients send it. */
  readonly #varying: RegExp;
  /** The name of the varying field, in a field of any form. */
  readonly #varyingName: RegExp;

  /**
   * @param varyingField the name of a field whose value differs in each request, such as
   *   `traceparent`. The cache has header sections without this field: two that differ only there
   *   are one entry, and `read` adds the field to the list of fields again. Nothing else in
   *   {@link ParsedHeaders} may depend on it.
   */
  constructor(varyingField: string) {
    this.#varying = new RegExp(`\\r\\n(${varyingField}): ([!-~]+)(?=\\r\\n)`, 'i');
    this.#varyingName = new RegExp(`\\r\\n${varyingField}:`, 'i');
  }

  /** @param received with the empty line at its end @returns undefined if it is invalid */
  read(received: ByteText): ParsedHeaders | undefined {
    if (received.length > CACHED_MAX_BYTES) return parsedHeadersOf(received);
    const found = this.#sections.get(received);
    if (found !== undefined) return found;
    // A copy: a slice would keep all received bytes in memory.
    const section = Buffer.from(received, 'latin1').toString('latin1');
    const varying = this.#varying.exec(section);
    if (varying !== null) {
      const [line, name = '', value = ''] = varying;
      const others = section.slice(0, varying.index) + section.slice(varying.index + line.length);
      // The field is repeated.
      if (this.#varyingName.test(others)) return parsedHeadersOf(section);
      const parsed = this.read(others);
      if (parsed === undefined) return undefined;
      const { headers } = parsed;
      return { ...parsed, section, headers: { ...headers, fields: [...headers.fields, name, value] } };
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
  read(
    received: ByteText,
    start: number,
    scanned: number,
    longHeaders: IterationBudget,
  ): ParsedHeadersReading {
    const latest = this.#latest;
    // This takes half the time of `startsWith`.
    if (latest && received.slice(start, start + latest.section.length) === latest.section) return latest;
    const reading = findHeaders(received, start, scanned);
    if (reading.kind !== 'headers') return reading;
    if (reading.section.length > CACHED_MAX_BYTES && !longHeaders.hasTime()) return LATER;
    const parsed = this.#cache.read(reading.section);
    if (parsed === undefined) return BAD_HTTP;
    if (parsed.section.length <= CACHED_MAX_BYTES) this.#latest = parsed;
    return parsed;
  }
}

function parsedHeadersOf(section: ByteText): ParsedHeaders | undefined {
  const headers = readHeaders(section);
  if (headers === undefined) return undefined;
  return { kind: 'headers', section, headers, create: createHeadersOf(headers) };
}
