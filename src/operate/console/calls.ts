import type { IncomingMessage, ServerResponse } from 'node:http';
import { json as jsonOf } from 'node:stream/consumers';
import { ID_RULE } from '../../core/contract/errors.ts';
import { int64FromNumberText } from '../../core/contract/int64.ts';
import { type HttpResponse, jsonResponse } from '../../core/response.ts';
import type { PlantFilter } from '../../engines/plant-search.ts';

/** Bytes of the body of a request of the page. */
const REQUEST_BYTES_MAX = 10_000;

/** A request of the page, to a path below `api/`. */
export interface Call {
  query: URLSearchParams;
  /** Empty for a GET request. */
  body: Record<string, unknown>;
  request: IncomingMessage;
  response: ServerResponse;
}

/** @returns undefined if the handler has responded itself */
export type Handler = (call: Call) => HttpResponse | Promise<HttpResponse | undefined>;

/** The request is invalid. The message tells the operator what to change. */
export class InvalidCall extends Error {}

/** Whether a page of the host in the request sent it (RFC 6454 section 7). */
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

/** The cookie has no Path, so browsers send it only to `api/`, even if a proxy changes the path. */
export function sessionCookie(request: IncomingMessage, half: string, end = ''): string[] {
  return ['Set-Cookie', `${cookieName(request)}=${half}; HttpOnly; SameSite=Strict${end}`];
}

/**
 * Reads both halves of the secret of the session, which `Sessions` made. The cookie has one half,
 * and browsers send it to all ports of the host. The page stores the other half for its own origin.
 *
 * @returns undefined if a half is missing
 */
export function secretOf(request: IncomingMessage): string | undefined {
  const prefix = `${cookieName(request)}=`;
  const cookies = request.headers.cookie?.split('; ') ?? [];
  const cookie = cookies.find(each => each.startsWith(prefix))?.slice(prefix.length);
  const header = request.headers['plant-store-console'];
  return cookie === undefined || header === undefined ? undefined : `${cookie} ${header}`;
}

/** @returns {} without a body @throws {InvalidCall} if the body is too long, or no JSON object */
export async function readJsonBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length === 0) return {};
  const isLong = length > REQUEST_BYTES_MAX;
  const body: unknown = isLong ? undefined : await jsonOf(request).catch(() => undefined);
  if (typeof body !== 'object' || body === null)
    throw new InvalidCall('the body is not a JSON object, or too long');
  return body as Record<string, unknown>;
}

/** Empty parameters do not limit the search. @throws {InvalidCall} if an id is invalid */
export function filterOf(query: URLSearchParams): PlantFilter {
  const textOf = (name: string): string | undefined => query.get(name) || undefined;
  const idOf = (name: string): bigint | undefined => {
    const text = textOf(name);
    if (text === undefined) return undefined;
    const id = int64FromNumberText(text);
    if (id === undefined) throw new InvalidCall(`${name} must be ${ID_RULE}`);
    return id;
  };
  return { id: idOf('id'), from: idOf('from'), name: textOf('name'), tag: textOf('tag') };
}

export function json(content: object, status = 200, fields: readonly string[] = []): HttpResponse {
  return jsonResponse(status, JSON.stringify(content), fields);
}

export function failure(status: number, message: string): HttpResponse {
  return json({ message }, status);
}

/** RFC 9110 section 8.6: a 204 response has no Content-Length. */
export function noContent(fields: readonly string[] = []): HttpResponse {
  return { result: 'other', status: 204, headers: fields, body: '' };
}
