import { createServer } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { type LoopbackServer, listen } from '../../harness/loopback-server.ts';

/** A {@link LoopbackServer} that counts what it gets. */
export interface ForeignPlantStore extends LoopbackServer {
  /** The ids that arrived, as they were written, in bodies that are JSON objects. */
  ids: string[];
  requests(): number;
}

/**
 * A plant store as somebody else might write it who has read the interface and nothing more: it keeps every sentence of
 * it, and answers 400 to all else. It shares no code with this one.
 *
 * @param writeOnce whether an id is rejected that is there already, be the plant the same or not
 * @param putOffEvery of so many requests one gets 429
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
