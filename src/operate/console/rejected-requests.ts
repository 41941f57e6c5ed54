import { isUtf8 } from 'node:buffer';
import { ERRORS, type ErrorBody, type ErrorName } from '../../core/contract/errors.ts';
import { readJson, readToEnd } from '../../core/contract/json-reader.ts';
import type { ResponseObserver } from '../../core/extension-points.ts';
import type { ReceivedRequest } from '../../core/request.ts';
import type { HttpResponse } from '../../core/response.ts';
import { withoutTokens } from '../masked-tokens.ts';
import { isErrorName } from '../result-kind.ts';

/** Maximum of groups. A further group replaces the one whose last request is the oldest. */
const GROUPS_MAX = 300;
/** Examples of each group: its last requests. */
const EXAMPLES_MAX = 5;
/** Bodies are recorded for this time. */
const RECORDING_MS = 3_600_000;
/** Stored bytes of the body of an example. */
const BODY_BYTES_MAX = 2_000;
/** Stored characters of a field. */
const TEXT_LENGTH_MAX = 200;

type Example = ReturnType<typeof exampleOf>;

/** Rejections with the same error, token and address. The newest example is first. */
type Group = ReturnType<typeof newGroup>;

export type LabelOf = (tokenId: number) => string;

/** All rejected requests since the start, in groups, only in memory. */
export class RejectedRequests implements ResponseObserver {
  /** The group with the newest request is last. */
  readonly #groups = new Map<string, Group>();
  #count = 0;
  /** Bodies are recorded until this time, ms since 1970; undefined: no bodies are recorded. */
  #recordsBodiesUntil: number | undefined;

  /** Starts to record bodies, or stops and forgets the recorded ones. */
  recordBodies(isOn: boolean): void {
    this.#recordsBodiesUntil = isOn ? Date.now() + RECORDING_MS : undefined;
    if (isOn) return;
    for (const { examples } of this.#groups.values())
      for (const example of examples) example.body = undefined;
  }

  /** Counts a rejection. The service calls it with every response, so it returns early. */
  responded(
    { result, body }: HttpResponse,
    received: ReceivedRequest | undefined,
    _durationMs: number,
    addressOf: () => string | undefined,
  ): void {
    if (!isErrorName(result)) return;
    this.#count++;
    const group = this.#groupOf(result, received?.tokenId, addressOf() ?? 'unknown');
    group.count++;
    group.lastAt = Date.now();
    const { message } = JSON.parse(String(body)) as ErrorBody;
    group.examples.unshift(exampleOf(message, received, this.#bodiesUntil() !== undefined));
    group.examples.splice(EXAMPLES_MAX);
  }

  #groupOf(name: ErrorName, tokenId: number | undefined, address: string): Group {
    const key = `${name} ${tokenId} ${address}`;
    const group = this.#groups.get(key) ?? newGroup(name, tokenId, address);
    this.#groups.delete(key);
    this.#groups.set(key, group);
    if (this.#groups.size > GROUPS_MAX) this.#forgetOldest();
    return group;
  }

  /** Replaces the oldest group. Its requests stay counted in a group without an address. */
  #forgetOldest(): void {
    const [key, oldest] = this.#groups.entries().find(([, { address }]) => address !== undefined)!;
    this.#groups.delete(key);
    const others = this.#groups.getOrInsertComputed(oldest.name, () => newGroup(oldest.name));
    others.count += oldest.count;
    others.firstAt = Math.min(others.firstAt, oldest.firstAt);
    others.lastAt = Math.max(others.lastAt, oldest.lastAt);
  }

  /** The groups for the page. The group with the newest request is first. */
  list(labelOf: LabelOf) {
    const groups = [...this.#groups].reverse().map(([key, { tokenId, examples, ...group }]) => {
      return { key, ...group, label: tokenId === undefined ? null : labelOf(tokenId) };
    });
    return { count: this.#count, bodiesUntil: this.#bodiesUntil() ?? null, groups };
  }

  /** @returns undefined: no bodies are recorded now */
  #bodiesUntil(): number | undefined {
    const until = this.#recordsBodiesUntil;
    return until !== undefined && Date.now() < until ? until : undefined;
  }

  /** The last requests of a group, the newest first. A group that was replaced has none. */
  examples(key: string) {
    const { error = 0, examples = [] } = this.#groups.get(key) ?? {};
    return examples.map(each => ({ ...each, ...shownBody(each, error) }));
  }
}

/** @param address undefined: the group counts the requests of replaced groups with this error */
function newGroup(name: ErrorName, tokenId?: number, address?: string) {
  const { number: error, status } = ERRORS[name];
  return {
    error,
    status,
    name,
    tokenId,
    address: address && storedText(address),
    count: 0,
    firstAt: Date.now(),
    lastAt: 0,
    examples: [] as Example[],
  };
}

/** Copies texts and bytes, so that the rest of the request can be freed. */
function exampleOf(message: string, received: ReceivedRequest | undefined, withBody: boolean) {
  const { headers, body } = received ?? {};
  const bytes = typeof body === 'string' ? Buffer.from(body, 'latin1') : body;
  return {
    at: Date.now(),
    message,
    // Null if no body was read. A body that was read may have no bytes.
    bodyBytes: body === undefined ? null : body.length,
    contentType: headers?.contentType && storedText(headers.contentType),
    // Undefined if no whole request arrived.
    requestLine: headers && storedText(`${headers.method} ${headers.target}`),
    body: withBody && bytes ? Uint8Array.from(bytes.subarray(0, BODY_BYTES_MAX)) : undefined,
  };
}

function storedText(text: string): string {
  return Buffer.from(withoutTokens(text).slice(0, TEXT_LENGTH_MAX)).toString();
}

/**
 * The text of a body, or null if it was not recorded; whether it was cut; the index of its fault.
 */
function shownBody({ body, bodyBytes }: Example, error: number) {
  if (body === undefined) return { body: null, isCut: false, faultAt: null };
  const text = withoutTokens(textOf(body));
  const isCut = bodyBytes !== null && body.length < bodyBytes;
  return { body: text, isCut, faultAt: error === ERRORS.notJson.number ? jsonFault(text, isCut) : null };
}

/** The longest part that is wrong only because the rest is missing, such as `\\u00e`. */
const INCOMPLETE_LENGTH_MAX = 5;

/** The index from which a text is not JSON in UTF-8. */
function jsonFault(text: string, isCut: boolean): number | null {
  const [utf8 = ''] = text.split(/\p{Cs}/u, 1);
  const fault = readToEnd(readJson(utf8, () => {})) ?? utf8.length;
  // The cut itself makes valid JSON end too early, possibly inside a character.
  return isCut && fault >= text.length - INCOMPLETE_LENGTH_MAX ? null : fault;
}

/** Bytes that may be a character of UTF-8 (RFC 3629 section 3), or any other byte from 0x80. */
const CHARACTER = /[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}|[\x80-\xff]/g;

/** Decodes UTF-8. A byte that is not UTF-8 becomes the lone surrogate U+DC00 plus the byte. */
function textOf(bytes: Uint8Array): string {
  const toSurrogate = (byte: string): string => String.fromCharCode(0xdc00 + byte.charCodeAt(0));
  return Buffer.from(bytes)
    .toString('latin1')
    .replace(CHARACTER, match => {
      const character = Buffer.from(match, 'latin1');
      return isUtf8(character) ? character.toString() : match.replace(/./gs, toSurrogate);
    });
}
