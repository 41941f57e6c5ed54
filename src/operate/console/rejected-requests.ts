import { isUtf8 } from 'node:buffer';
import { SYSTEM_CLOCK } from '../../core/clock.ts';
import { ERRORS, type ErrorName } from '../../core/contract/errors.ts';
import { int64FromNumberText } from '../../core/contract/int64.ts';
import { readJson, readToEnd } from '../../core/contract/json-reader.ts';
import type { ResponseObserver } from '../../core/extension-points.ts';
import { fieldValues } from '../../core/header-fields.ts';
import type { ReceivedRequest } from '../../core/request.ts';
import { type HttpResponse, isErrorName } from '../../core/response.ts';
import { withoutTokens } from '../log/masked-tokens.ts';

/** Maximum of groups. A further group replaces the one whose newest request is the oldest. */
const GROUPS_MAX = 300;
/** Examples of each group: its last requests. */
const EXAMPLES_MAX = 5;
/** Bodies are recorded for this time. */
const RECORDING_MS = 3_600_000;
/** Stored bytes of the body of an example. */
const BODY_MAX_BYTES = 2_000;
/** Stored characters of a field. */
const TEXT_LENGTH_MAX = 200;
/** Reasons of a group that are counted. */
const REASONS_MAX = 20;
/** Plants of a group that are shown without its examples. */
const PLANT_IDS_MAX = 3;
const EMPTY_BODY = 'the body is empty';
const CHANGE_BY_IMPORT =
  'a list wanted to change a plant that is stored; import it with --replace if the list is right';
const CHANGED_MEANWHILE =
  'somebody else changed the plant in the meantime, so nothing was stored; read it again before you change it';
const ID_IN_BODY = /^\s*\{[^{}[\]]*?"id"\s*:\s*"?(-?[0-9]{1,19})"?\s*[,}]/;

/** A rejected request. Absent members are unknown, because no whole request arrived. */
interface Example {
  /** Ms since 1970. */
  at: number;
  message: string;
  /** Null if no body was read. A body that was read may have no bytes. */
  bodyBytes: number | null;
  /** The Content-Length; null: there was none. */
  declaredBytes: number | null;
  contentType: string | undefined;
  requestLine: string | undefined;
  /** The id of the plant, in decimal; empty: it could not be read. */
  plantId: string;
  /** The beginning of the body; undefined: it was not recorded. */
  body: Uint8Array | undefined;
}

/** An example for the page. */
interface ShownExample extends Omit<Example, 'body'> {
  /** Null if it was not recorded. */
  body: string | null;
  isCut: boolean;
  /** The index of what is not JSON; null: the body is not the fault, or was not recorded. */
  faultAt: number | null;
}

/** Rejections with the same error, token and address. Times are in ms since 1970. */
interface Group {
  /** The number of the error. */
  error: number;
  status: number;
  name: ErrorName;
  tokenId: number | undefined;
  /** Undefined: this group counts the requests of all replaced groups with this error. */
  address: string | undefined;
  count: number;
  firstAt: number;
  lastAt: number;
  /** How many requests had which fault, in words for operators. */
  reasons: Map<string, number>;
  /** The newest is first. */
  examples: Example[];
}

interface ShownGroup extends Omit<Group, 'tokenId' | 'examples' | 'reasons'> {
  key: string;
  /** The most frequent is first. */
  reasons: [text: string, count: number][];
  /** Of the examples, the newest first, in decimal. */
  plantIds: string[];
  /** The message of the error catalogue. */
  sentence: string;
  /** The label of the token; null: the store does not have it, or it was not looked up. */
  label: string | null;
  /** Why a token that the store has was rejected; null: it was valid, or is unknown. */
  tokenFault: 'revoked' | 'expired' | null;
}

/** The groups for the page. The group with the newest request is first. */
interface RejectionList {
  /** All rejections since the start, except tests of `import`. */
  count: number;
  /** Bodies are recorded until this time, ms since 1970; null: no bodies are recorded. */
  bodiesUntil: number | null;
  groups: ShownGroup[];
}

/** Whether bodies are recorded. `until` is in ms since 1970; `end` is the timer that stops it. */
type Recording = { kind: 'off' } | { kind: 'on'; until: number; end: Disposable };

/** Finds the label of a token for operators. */
export type LabelOf = (tokenId: number) => string;

type IsRevoked = (tokenId: number) => boolean;

/** All rejected requests since the start, in groups, only in memory. */
export class RejectedRequests implements ResponseObserver, Disposable {
  /** The group with the newest request is last. */
  readonly #groups = new Map<string, Group>();
  #count = 0;
  #recording: Recording = { kind: 'off' };

  /** Starts to record bodies, for an hour, or stops and forgets the recorded ones. */
  recordBodies(isOn: boolean): void {
    this[Symbol.dispose]();
    if (isOn) {
      const end = SYSTEM_CLOCK.setTimer(() => this.recordBodies(false), RECORDING_MS, false);
      this.#recording = { kind: 'on', until: Date.now() + RECORDING_MS, end };
      return;
    }
    this.#recording = { kind: 'off' };
    for (const { examples } of this.#groups.values())
      for (const example of examples) example.body = undefined;
  }

  /** Ends the timer. */
  [Symbol.dispose](): void {
    if (this.#recording.kind === 'on') this.#recording.end[Symbol.dispose]();
  }

  /** Counts a rejection. The service calls it with every response, so it returns early. */
  responded(
    { result, message, plantId }: HttpResponse,
    received: ReceivedRequest | undefined,
    _durationMs: number,
    addressOf: (request: ReceivedRequest | undefined) => string | undefined,
  ): void {
    if (!isErrorName(result)) return;
    this.#count++;
    const group = this.#groupOf(result, received?.tokenId, addressOf(received) ?? 'unknown');
    group.count++;
    group.lastAt = Date.now();
    countReason(group.reasons, reasonOf(result, message!, received));
    const example = exampleOf(message!, received, this.#recording.kind === 'on');
    group.examples.unshift({ ...example, plantId: String(plantId ?? idIn(received?.body) ?? '') });
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

  list(labelOf: LabelOf, isRevoked: IsRevoked): RejectionList {
    const groups = [...this.#groups]
      .reverse()
      .map(([key, group]) => shownGroup(key, group, labelOf, isRevoked));
    const bodiesUntil = this.#recording.kind === 'on' ? this.#recording.until : null;
    return { count: this.#count, bodiesUntil, groups };
  }

  /**
   * The last requests of a group, the newest first, and the group at the same time, so that both
   * agree. A group that was replaced is null, and has no examples.
   */
  examples(
    key: string,
    labelOf: LabelOf,
    isRevoked: IsRevoked,
  ): { group: ShownGroup | null; examples: ShownExample[] } {
    const group = this.#groups.get(key);
    if (group === undefined) return { group: null, examples: [] };
    const examples = group.examples.map(each => ({ ...each, ...shownBody(each, group.error) }));
    return { group: shownGroup(key, group, labelOf, isRevoked), examples };
  }
}

function shownGroup(key: string, stored: Group, labelOf: LabelOf, isRevoked: IsRevoked): ShownGroup {
  const { tokenId, examples, reasons, ...group } = stored;
  const plantIds = new Set(examples.map(({ plantId }) => plantId).filter(id => id !== ''));
  const shown = {
    key,
    ...group,
    sentence: ERRORS[group.name].message,
    reasons: [...reasons].sort(([, a], [, b]) => b - a),
    plantIds: [...plantIds].slice(0, PLANT_IDS_MAX),
  };
  if (tokenId === undefined) return { ...shown, label: null, tokenFault: null };
  const fault = isRevoked(tokenId) ? 'revoked' : 'expired';
  const tokenFault = group.name === 'tokenRejected' ? fault : null;
  return { ...shown, label: labelOf(tokenId), tokenFault };
}

/** Makes a group without requests. Without an address, it is for those of replaced groups. */
function newGroup(name: ErrorName, tokenId?: number, address?: string): Group {
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
    reasons: new Map(),
    examples: [],
  };
}

/** Copies texts and bytes, so that the rest of the request can be freed. */
function exampleOf(
  message: string,
  received: ReceivedRequest | undefined,
  withBody: boolean,
): Omit<Example, 'plantId'> {
  const { headers, body } = received ?? {};
  const bytes = typeof body === 'string' ? Buffer.from(body, 'latin1') : body;
  return {
    at: Date.now(),
    message,
    bodyBytes: body === undefined ? null : body.length,
    declaredBytes: headers?.framing.kind === 'length' ? headers.framing.bytes : null,
    contentType: headers?.contentType && storedText(headers.contentType),
    requestLine: headers && storedText(`${headers.method} ${headers.target}`),
    body: withBody && bytes ? Uint8Array.from(bytes.subarray(0, BODY_MAX_BYTES)) : undefined,
  };
}

/**
 * What is wrong, in words for operators. The message of a changed plant has its id, so it would make
 * each request a reason of its own.
 */
function reasonOf(name: ErrorName, message: string, received: ReceivedRequest | undefined): string {
  if (name === 'notJson' && received?.body?.length === 0) return EMPTY_BODY;
  if (name !== 'plantChanged') return storedText(message);
  const isNew = fieldValues(received?.headers.fields ?? [], 'if-plant-revision')[0] === '0';
  return isNew ? CHANGE_BY_IMPORT : CHANGED_MEANWHILE;
}

function countReason(reasons: Map<string, number>, reason: string): void {
  if (!reasons.has(reason) && reasons.size >= REASONS_MAX) return;
  reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
}

/**
 * The id that a rejected body has at its first level, if it is near the beginning. The body may be
 * no JSON, and its id may be in quotation marks by mistake.
 */
function idIn(body: string | Uint8Array | undefined): bigint | undefined {
  if (body === undefined) return undefined;
  const beginning = (typeof body === 'string' ? Buffer.from(body, 'latin1') : body).subarray(
    0,
    BODY_MAX_BYTES,
  );
  const [, id] = ID_IN_BODY.exec(Buffer.from(beginning).toString('latin1')) ?? [];
  return id === undefined ? undefined : int64FromNumberText(id);
}

/** Masks tokens, and makes a copy that is cut. */
function storedText(text: string): string {
  return Buffer.from(withoutTokens(text).slice(0, TEXT_LENGTH_MAX)).toString();
}

/** @param error the number of the error that the response had */
function shownBody(
  { body, bodyBytes }: Example,
  error: number,
): Pick<ShownExample, 'body' | 'isCut' | 'faultAt'> {
  if (body === undefined) return { body: null, isCut: false, faultAt: null };
  const text = withoutTokens(textOf(body));
  const isCut = bodyBytes !== null && body.length < bodyBytes;
  return { body: text, isCut, faultAt: error === ERRORS.notJson.number ? jsonFault(text, isCut) : null };
}

/** Length of the longest text that is wrong only because its rest is missing, such as `\\u00e`. */
const INCOMPLETE_LENGTH_MAX = 5;

/** The index from which a text is not JSON in UTF-8; null: only its missing rest makes it wrong. */
function jsonFault(text: string, isCut: boolean): number | null {
  const [utf8 = ''] = text.split(/\p{Cs}/u, 1);
  const fault = readToEnd(readJson(utf8, () => {})) ?? utf8.length;
  // The cut makes valid JSON end too early, possibly inside a character.
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
