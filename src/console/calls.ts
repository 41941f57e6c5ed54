import type { IncomingMessage } from 'node:http';
import { ID_RULE } from '../contract/errors.ts';
import { isInt64 } from '../contract/int64.ts';
import type { PlantFilter } from '../store/plant-store.ts';
import { REQUEST_BYTES_MAX } from './limits.ts';

export const COOKIE = 'plant_store_console';

/** The page sent something that it should have checked. */
export class InvalidCall extends Error {}

/** Whether the page of this very address sends the request (RFC 6454 section 7). */
export function isOwnOrigin({ headers: { origin, host } }: IncomingMessage): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}

export function cookieOf({ headers: { cookie = '' } }: IncomingMessage): string | undefined {
  return cookie
    .split('; ')
    .find(each => each.startsWith(`${COOKIE}=`))
    ?.slice(COOKIE.length + 1);
}

/** @returns undefined if it is no JSON object or too long */
export async function readJsonBody(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > REQUEST_BYTES_MAX) return undefined;
  }
  if (text === '') return {};
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

export function filterOf(query: URLSearchParams): PlantFilter {
  const filter: PlantFilter = {};
  for (const name of ['id', 'from'] as const) {
    const text = query.get(name);
    if (!text) continue;
    const id = idOf(text);
    if (id === undefined) throw new InvalidCall(`${name} must be ${ID_RULE}`);
    filter[name] = id;
  }
  for (const name of ['name', 'tag'] as const) {
    const text = query.get(name);
    if (text) filter[name] = text;
  }
  return filter;
}

/** @returns undefined if the text is not an int64 */
export function idOf(text: string): bigint | undefined {
  const id = /^-?[0-9]{1,19}$/.test(text) ? BigInt(text) : undefined;
  return id !== undefined && isInt64(id) ? id : undefined;
}
