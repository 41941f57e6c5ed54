import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { type LoopbackServer, listen } from '../../harness/loopback-server.ts';

export const TOKEN = 'plant_token-of-the-tests';
const HEADERS = { 'content-type': 'application/json' };
export const ERROR = { error: 1, message: 'No.' };

export interface ForeignPlantStore extends LoopbackServer {
  /** The exact texts of the ids that arrived in JSON objects. */
  ids: string[];
  requests(): number;
}

export interface ForeignResponse {
  status: number;
  headers: Record<string, string>;
  /** A value that is written as JSON, or the bytes. */
  body: Record<string, unknown> | unknown[] | Buffer;
  /** The id of the NewPlant that was sent, and whether it is stored already. */
  plantId?: bigint;
  isAgain: boolean;
  /** The header section of the request, and whether its connection had an earlier request. */
  sent: IncomingHttpHeaders;
  isOnUsedConnection: boolean;
}

/** What a server does in its own way, right or wrong. Each is absent by default. */
export interface Ways {
  /** A path before `/plants`. */
  base?: string;
  /** One of ten requests gets this status, with Retry-After. */
  putOff?: [status: number, retryAfter: string];
  /** Whether a request with this header section may create a plant. */
  accepts?(headers: IncomingHttpHeaders): boolean;
  read?(text: string): string;
  respond?(usual: ForeignResponse): ForeignResponse;
  send?(response: ServerResponse, body: Buffer): unknown;
}

const isJsonWithToken = ({ authorization = '', 'content-type': type = '' }: IncomingHttpHeaders): boolean =>
  authorization.replace(/^bearer /i, '') === TOKEN && type.split(';')[0] === 'application/json';

/**
 * A plant store by another author who knows only the interface and the RFCs. It follows every
 * sentence of the interface and responds to any other request with 400. It shares no code with this
 * service.
 */
export async function startForeignStore(ways: Ways = {}): Promise<ForeignPlantStore> {
  const { base = '', putOff, read = text => text, respond = usual => usual } = ways;
  const { accepts = isJsonWithToken, send = (response, body) => response.end(body) } = ways;
  const ids: string[] = [];
  const stored = new Set<bigint>();
  const usedConnections = new WeakSet<Socket>();
  let requests = 0;

  function create(text: string): Omit<ForeignResponse, 'sent' | 'isOnUsedConnection'> | undefined {
    const { id, name, tag } = JSON.parse(text, (key, value, { source = '' }: { source?: string } = {}) => {
      if (key !== 'id' || typeof value !== 'number') return value;
      ids.push(source);
      return /^-?\d+$/.test(source) ? BigInt(source) : value;
    });
    if (typeof id !== 'bigint' || id !== BigInt.asIntN(64, id)) return undefined;
    if (typeof name !== 'string' || !['undefined', 'string'].includes(typeof tag)) return undefined;
    const body = { name, ...(tag !== undefined && { tag }) };
    return { status: 200, headers: HEADERS, body, plantId: id, isAgain: stored.has(id) };
  }

  const server = createServer(async (request, response) => {
    const isTenth = ++requests % 10 === 0;
    const text = await readText(request);
    if (putOff && isTenth) return void response.writeHead(putOff[0], { 'Retry-After': putOff[1] }).end();
    const { method, url, headers: sent } = request;
    const mayCreate = method === 'POST' && url === `${base}/plants` && accepts(sent);
    const isOnUsedConnection = usedConnections.has(request.socket);
    usedConnections.add(request.socket);
    let usual: ReturnType<typeof create>;
    try {
      usual = mayCreate ? create(read(text)) : undefined;
    } catch {
      // No JSON object.
    }
    usual ??= { status: 400, headers: HEADERS, body: ERROR, isAgain: false };
    const { status, headers, body, plantId } = respond({ ...usual, sent, isOnUsedConnection });
    if (status < 300 && plantId !== undefined) stored.add(plantId);
    response.writeHead(status, headers);
    send(response, Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)));
  });
  return Object.assign(await listen(server), { ids, requests: () => requests });
}
