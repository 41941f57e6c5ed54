import { createServer } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { type LoopbackServer, listen } from '../../harness/loopback-server.ts';

/** A {@link LoopbackServer} that counts its requests. */
export interface ForeignPlantStore extends LoopbackServer {
  /** The exact texts of the ids that arrived in JSON objects. */
  ids: string[];
  requests(): number;
}

/**
 * A plant store by another author who knows only the interface. It follows every sentence of the
 * interface and responds to any other request with 400. It shares no code with this service.
 *
 * @param writeOnce whether an id that is stored is rejected, also with the same content
 * @param putOffEvery one of this many requests gets 429
 */
export async function startForeignStore(
  token: string,
  { writeOnce = false, putOffEvery = Number.POSITIVE_INFINITY } = {},
): Promise<ForeignPlantStore> {
  const ids: string[] = [];
  const stored = new Set<bigint>();
  let requests = 0;

  function create(text: string): { name: string; tag: string | undefined } | undefined {
    const { id, name, tag } = JSON.parse(text, (key, value, { source = '' }: { source?: string } = {}) => {
      if (key !== 'id' || typeof value !== 'number') return value;
      ids.push(source);
      return /^-?\d+$/.test(source) ? BigInt(source) : value;
    });
    if (typeof id !== 'bigint' || id !== BigInt.asIntN(64, id) || (writeOnce && stored.has(id)))
      return undefined;
    if (typeof name !== 'string' || !['undefined', 'string'].includes(typeof tag)) return undefined;
    stored.add(id);
    return { name, tag };
  }

  const server = createServer(async (request, response) => {
    const isPutOff = ++requests % putOffEvery === 0;
    const { method, url, headers } = request;
    const text = await readText(request);
    if (isPutOff) return void response.writeHead(429).end();
    const mayCreate = method === 'POST' && url === '/plants' && headers.authorization === `Bearer ${token}`;
    let plant: object | undefined;
    try {
      plant = mayCreate ? create(text) : undefined;
    } catch {
      // No JSON object.
    }
    response.writeHead(plant ? 200 : 400, { 'content-type': 'application/json' });
    response.end(JSON.stringify(plant ?? { error: 1, message: 'No.' }));
  });
  return Object.assign(await listen(server), { ids, requests: () => requests });
}
