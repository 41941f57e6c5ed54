import type { IncomingMessage, ServerResponse } from 'node:http';
import { ID_RULE } from '../../core/contract/errors.ts';
import { int64FromNumberText } from '../../core/contract/int64.ts';
import type { PlantFilter } from '../../engines/search/plant-search.ts';
import { instantOf } from '../../formats/instant.ts';
import { json, type OpsResponse } from '../ops-response.ts';
import type { SessionSecret } from './sessions.ts';

/** Maximum bytes of the body of a request. */
const REQUEST_MAX_BYTES = 10_000;

/** The last time of ECMAScript, and with a minus sign the first one; ms since 1970. */
const TIME_MAX_MS = 8.64e15;

/** A request of the page, to a path below `api/`. */
export interface ApiRequest {
  query: URLSearchParams;
  /** Empty for a GET request. */
  body: Record<string, unknown>;
  request: IncomingMessage;
  response: ServerResponse;
}

/** @returns undefined if the handler has responded itself */
export type Handler = (request: ApiRequest) => OpsResponse | Promise<OpsResponse | undefined>;

/** The request is invalid. The message tells the operator what to change. */
export class InvalidApiRequest extends Error {}

/** Whether the page that sent a request is of the host in its Host field (RFC 6454 section 7). */
export function isOwnOrigin({ headers: { origin, host } }: IncomingMessage): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}

/**
 * The name of the cookie of a session. Browsers send the cookies of one port to all ports of a
 * host (RFC 6265 section 8.5), so consoles on other ports need other names.
 */
function cookieName({ headers: { host = '' } }: IncomingMessage): string {
  return `plant_store_console${/:([0-9]+)$/.exec(host)?.[1] ?? ''}`;
}

/**
 * The header field that stores a half of the secret of a session in the browser. The cookie has no
 * Path, so browsers send it only to `api/`, even if a proxy changes the path.
 */
export function sessionCookie(request: IncomingMessage, cookieHalf: string): string[] {
  return ['Set-Cookie', `${cookieName(request)}=${cookieHalf}; HttpOnly; SameSite=Strict`];
}

/** The header field that deletes the cookie of {@link sessionCookie}. */
export function expiredCookie(request: IncomingMessage): string[] {
  return ['Set-Cookie', `${cookieName(request)}=; HttpOnly; SameSite=Strict; Max-Age=0`];
}

/** Reads the secret of the session. @returns undefined if a half is missing */
export function secretOf(request: IncomingMessage): SessionSecret | undefined {
  const prefix = `${cookieName(request)}=`;
  const cookies = request.headers.cookie?.split('; ') ?? [];
  const cookieHalf = cookies.find(each => each.startsWith(prefix))?.slice(prefix.length);
  const headerHalf = request.headers['plant-store-console'];
  if (cookieHalf === undefined || typeof headerHalf !== 'string') return undefined;
  return { cookieHalf, headerHalf };
}

/**
 * Reads the body of a request.
 *
 * @returns an empty object without a body
 * @throws {InvalidApiRequest} if the body is too long, or no JSON object
 */
export async function readJsonBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  try {
    const bytes = await readBytes(request);
    const body: unknown = bytes.length === 0 ? {} : JSON.parse(bytes.toString());
    if (typeof body === 'object' && body !== null && !Array.isArray(body))
      return body as Record<string, unknown>;
  } catch {
    // The body is no JSON or too long, or its client has disconnected.
  }
  throw new InvalidApiRequest('the body is not a JSON object, or too long');
}

/** Reads a body with or without a Content-Length. @throws if it is too long */
async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // By default, leaving the loop early would close the connection before the response.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > REQUEST_MAX_BYTES) throw new RangeError('too long');
  }
  return Buffer.concat(chunks);
}

/**
 * Reads what to search. Empty parameters do not limit the search.
 *
 * @throws {InvalidApiRequest} if an id or a time is invalid
 */
export function filterOf(query: URLSearchParams): PlantFilter {
  const textOf = (name: string): string | undefined => query.get(name) || undefined;
  const idOf = (name: string): bigint | undefined => {
    const text = textOf(name);
    if (text === undefined) return undefined;
    const id = int64FromNumberText(text);
    if (id === undefined) throw new InvalidApiRequest(`${name} must be ${ID_RULE}`);
    return id;
  };
  const since = textOf('since');
  return {
    id: idOf('id'),
    from: idOf('from'),
    name: textOf('name'),
    tag: textOf('tag'),
    isUntagged: query.get('untagged') === '1',
    since: since === undefined ? undefined : timeOf(since),
    outcome: outcomeOf(textOf('outcome')),
  };
}

/** Reads a number from 0. @returns undefined without the parameter @throws {InvalidApiRequest} */
export function countOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) || undefined;
  if (text !== undefined && !/^[0-9]{1,15}$/.test(text))
    throw new InvalidApiRequest(`${name} must be a number from 0`);
  return text === undefined ? undefined : Number(text);
}

/** @throws {InvalidApiRequest} */
function outcomeOf(text: string | undefined): PlantFilter['outcome'] {
  if (text === undefined || text === 'created' || text === 'revised') return text;
  throw new InvalidApiRequest('outcome must be created or revised');
}

/** Reads ms since 1970, or a time of RFC 3339. @throws {InvalidApiRequest} */
function timeOf(text: string): number {
  const time = /^-?[0-9]+$/.test(text) ? Number(text) : instantOf(text);
  if (time === undefined || Math.abs(time) > TIME_MAX_MS)
    throw new InvalidApiRequest('since must be a time such as 2026-05-01T14:30:00Z, or ms since 1970');
  return time;
}

/** A response with a message for the operator. */
export function failure(status: number, message: string): OpsResponse {
  return json({ message }, status);
}

/** RFC 9110 section 8.6: a 204 response has no Content-Length. */
export function noContent(fields: readonly string[] = []): OpsResponse {
  return { status: 204, fields, body: '' };
}
