import { createServer, type ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { type LoopbackServer, listen } from '../../harness/loopback-server.ts';

/** A {@link LoopbackServer} that counts its requests. */
export interface ForeignPlantStore extends LoopbackServer {
  /** The exact texts of the ids that arrived in JSON objects. */
  ids: string[];
  requests(): number;
}

export interface Plant {
  name: string;
  tag?: string;
}

/** What a server does in its own way, right or wrong. Each is absent by default. */
export interface Ways {
  /** An id that is stored is rejected, also with the same content. */
  writeOnce?: boolean;
  /** One of this many requests gets `putOff`, by default 429. */
  putOffEvery?: number;
  putOff?: [status: number, headers?: Record<string, string>];
  /** The body of a 200. @param again whether its id is stored already */
  plant?(plant: Plant, again: boolean): unknown;
  /** The status for a valid NewPlant; undefined: as the interface says. */
  status?(plant: Plant, again: boolean): number | undefined;
  /** The body of each other status. */
  error?(error: { error: number; message: string }): unknown;
  /** All headers, by default the Content-Type application/json. */
  headers?(status: number, sent: string): Record<string, string>;
  /** The bytes of a body. */
  write?(json: string, status: number): string | Buffer;
  /** Sends a response in another form. */
  send?(response: ServerResponse, body: string | Buffer): unknown;
}

/**
 * A plant store by another author who knows only the interface. It follows every sentence of the
 * interface and responds to any other request with 400. It shares no code with this service.
 */
export async function startForeignStore(token: string, ways: Ways = {}): Promise<ForeignPlantStore> {
  const { putOffEvery = Number.POSITIVE_INFINITY, putOff = [429] } = ways;
  const ids: string[] = [];
  const stored = new Set<bigint>();
  let requests = 0;

  /** @returns the status and the body */
  function create(text: string): [status: number, body: unknown] | undefined {
    const { id, name, tag } = JSON.parse(text, (key, value, { source = '' }: { source?: string } = {}) => {
      if (key !== 'id' || typeof value !== 'number') return value;
      ids.push(source);
      return /^-?\d+$/.test(source) ? BigInt(source) : value;
    });
    const again = stored.has(id);
    if (typeof id !== 'bigint' || id !== BigInt.asIntN(64, id) || (ways.writeOnce && again)) return undefined;
    if (typeof name !== 'string' || !['undefined', 'string'].includes(typeof tag)) return undefined;
    const plant = { name, ...(tag !== undefined && { tag }) };
    const status = ways.status?.(plant, again) ?? 200;
    if (status >= 300) return [status, rejection()];
    stored.add(id);
    return [status, ways.plant ? ways.plant(plant, again) : plant];
  }

  function rejection(): unknown {
    const error = { error: 1, message: 'No.' };
    return ways.error ? ways.error(error) : error;
  }

  const server = createServer(async (request, response) => {
    const isPutOff = ++requests % putOffEvery === 0;
    const { method, url, headers } = request;
    const text = await readText(request);
    if (isPutOff) return void response.writeHead(...putOff).end();
    const mayCreate = method === 'POST' && url === '/plants' && headers.authorization === `Bearer ${token}`;
    let result: ReturnType<typeof create>;
    try {
      result = mayCreate ? create(text) : undefined;
    } catch {
      // No JSON object.
    }
    const [status, body] = result ?? [400, rejection()];
    const json = JSON.stringify(body) ?? '';
    const bytes = ways.write ? ways.write(json, status) : json;
    response.writeHead(status, ways.headers?.(status, text) ?? { 'content-type': 'application/json' });
    if (ways.send) ways.send(response, bytes);
    else response.end(bytes);
  });
  return Object.assign(await listen(server), { ids, requests: () => requests });
}
