import { hashToken, isWellFormed } from '../auth/token.ts';
import { isJsonMediaType } from './header-fields.ts';
import { ORDINARY_HEAD_BYTES_MAX, ORDINARY_HEADS_MAX } from './limits.ts';

/** What the head of an ordinary request says. */
interface OrdinaryHead {
  /** SHA-256 of the token in hexadecimal. */
  tokenHash: string;
  bodyBytes: number;
}

/** Of every ordinary request. */
const REQUEST_LINE = 'POST /plants HTTP/1.1';
const BEGINNING = Buffer.from(`${REQUEST_LINE}\r\n`);
/** RFC 9112 section 5 allows more: no space or several in front of a value, some behind it, bytes beyond ASCII. */
const FIELD = /^([A-Za-z][A-Za-z0-9-]*): ([!-~](?:[ -~]*[!-~])?)$/;
const HOST = /^[A-Za-z0-9.-]+(?::[0-9]{1,5})?$/;
const CREDENTIAL = /^Bearer ([A-Za-z0-9_]+)$/;
const LENGTH = /^(?:0|[1-9][0-9]{0,6})$/;
/** Fields that change how a request is read, or what becomes of its connection. */
const FRAMING =
  /^(?:connection|content-encoding|expect|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$/;

/**
 * Reads the heads of ordinary requests: `POST /plants` with one Host, Authorization, Content-Type and Content-Length,
 * each in its plainest form, and nothing that changes how the request is read. This is a small part of what RFC 9112
 * allows, and means the same there.
 *
 * Clients send the same head again and again, so some are remembered: what a head says never changes, and whether its
 * token is in force is asked for each request.
 */
export class OrdinaryHeads {
  readonly #seen = new Map<string, OrdinaryHead>();
  readonly #leavesOrigin: boolean;

  /** @param leavesOrigin whether a head with the field Origin is not ordinary, since its answer needs fields of its own */
  constructor(leavesOrigin = false) {
    this.#leavesOrigin = leavesOrigin;
  }

  /**
   * @param text without the empty line at its end, a character for each byte
   * @returns undefined for a head that is not ordinary, which may be valid all the same
   */
  read(text: string): OrdinaryHead | undefined {
    const seen = this.#seen.get(text);
    if (seen !== undefined) return seen;
    const head = readOrdinaryHead(text, this.#leavesOrigin);
    if (head === undefined) return undefined;
    if (this.#seen.size >= ORDINARY_HEADS_MAX) this.#seen.clear();
    this.#seen.set(text, head);
    return head;
  }
}

function readOrdinaryHead(text: string, leavesOrigin: boolean): OrdinaryHead | undefined {
  if (text.length > ORDINARY_HEAD_BYTES_MAX) return undefined;
  const [requestLine, ...lines] = text.split('\r\n');
  if (requestLine !== REQUEST_LINE) return undefined;
  const values = new Map<string, string>();
  for (const line of lines) {
    const [, field, value] = FIELD.exec(line) ?? [];
    if (field === undefined || value === undefined) return undefined;
    const name = field.toLowerCase();
    const keepsConnection = name === 'connection' && value.toLowerCase() === 'keep-alive';
    if (leavesOrigin && name === 'origin') return undefined;
    if ((FRAMING.test(name) && !keepsConnection) || values.has(name)) return undefined;
    values.set(name, value);
  }
  const token = CREDENTIAL.exec(values.get('authorization') ?? '')?.[1] ?? '';
  const length = values.get('content-length') ?? '';
  const isOrdinary =
    isWellFormed(token) &&
    LENGTH.test(length) &&
    HOST.test(values.get('host') ?? '') &&
    isJsonMediaType(values.get('content-type') ?? '');
  return isOrdinary ? { tokenHash: hashToken(token), bodyBytes: Number(length) } : undefined;
}

/** Whether a head that has not arrived whole begins as one of the fast path. */
export function mayBeOrdinary(arrived: Buffer): boolean {
  const length = Math.min(arrived.length, BEGINNING.length);
  return arrived.length <= ORDINARY_HEAD_BYTES_MAX && arrived.compare(BEGINNING, 0, length, 0, length) === 0;
}
