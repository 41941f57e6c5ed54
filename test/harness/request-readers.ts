import { createServer, type IncomingMessage, METHODS } from 'node:http';
import { Duplex } from 'node:stream';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { HEADER_MAX_BYTES } from '../../src/core/contract/limits.ts';
import { BodyDecoder } from '../../src/server/body-decoder.ts';
import {
  EMPTY_LINES_MAX_BYTES,
  emptyLinesAt,
  findHeaders,
  readHeaders,
} from '../../src/server/request-headers.ts';

/** A whole request that a server has taken from the bytes of a connection. */
export interface TakenRequest {
  method: string;
  target: string;
  fields: readonly string[];
  /** One character for each byte. */
  body: string;
}

/** The whole requests that the service takes from these bytes, without a socket. */
export function takenByService(bytes: Buffer): TakenRequest[] {
  const taken: TakenRequest[] = [];
  const text = bytes.toString('latin1');
  for (let start = 0; start < bytes.length; ) {
    const emptyBytes = emptyLinesAt(text, start);
    if (emptyBytes > EMPTY_LINES_MAX_BYTES) return taken;
    start += emptyBytes;
    const reading = findHeaders(text, start);
    const headers = reading.kind === 'headers' ? readHeaders(reading.section) : undefined;
    if (reading.kind !== 'headers' || headers === undefined) return taken;
    const bodyStart = start + reading.section.length;
    const decoder = new BodyDecoder(headers.framing);
    let body = '';
    const decoded = decoder.decode(bytes.subarray(bodyStart), piece => (body += piece.toString('latin1')));
    if (decoded.kind !== 'complete') return taken;
    const { method, target, fields } = headers;
    taken.push({ method, target, fields, body });
    if (headers.isLast) return taken;
    start = bodyStart + decoded.bytes;
  }
  return taken;
}

const oracle = createServer({ maxHeaderSize: HEADER_MAX_BYTES, requireHostHeader: false });
// With a maximum, Node drops further fields.
oracle.maxHeadersCount = 0;

/** The requests that Node's HTTP server has begun to take, by their connections. */
const begunBy = new WeakMap<object, (TakenRequest & { isWhole: boolean })[]>();

const take = (request: IncomingMessage): void => {
  const { method = '', url: target = '', rawHeaders: fields, socket } = request;
  const begun = { method, target, fields, body: '', isWhole: false };
  begunBy.get(socket)!.push(begun);
  request.setEncoding('latin1').on('data', piece => (begun.body += piece));
  request.on('end', () => (begun.isWhole = true));
};

for (const event of ['request', 'checkContinue', 'checkExpectation'])
  oracle.on(event, (request, response) => {
    take(request);
    request.on('end', () => response.end());
  });
oracle.on('connect', ({ method = '', url: target = '', rawHeaders: fields, socket }) => {
  begunBy.get(socket)!.push({ method, target, fields, body: '', isWhole: true });
});
// `takenByNode` ends the connection, when the requests before the error are taken.
oracle.on('clientError', () => {});

/** Event-loop iterations without a further request, after which Node's HTTP server takes none. */
const IDLE_ITERATIONS = 3;

/** The whole requests that Node's HTTP server takes from these bytes. */
export async function takenByNode(bytes: Buffer): Promise<TakenRequest[]> {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const begun: (TakenRequest & { isWhole: boolean })[] = [];
  const taken = () => begun.filter(each => each.isWhole);
  begunBy.set(socket, begun);
  socket.on('error', () => {});
  // https://nodejs.org/api/http.html#event-connection
  oracle.emit('connection', socket);
  socket.push(bytes);
  for (let count = -1, idle = 0; idle < IDLE_ITERATIONS; idle++) {
    await nextIteration();
    if (taken().length !== count) idle = 0;
    count = taken().length;
  }
  socket.destroy();
  return taken().map(({ isWhole: _, ...request }) => request);
}

/**
 * Why the service may take a request that Node's HTTP server does not.
 *
 * @param before the request before it
 */
export function reasonForMore(
  { method }: TakenRequest,
  before: TakenRequest | undefined,
): string | undefined {
  // An unknown method has the same response as a known one that the path does not support.
  if (!METHODS.includes(method)) return 'a method that Node does not know';
  // Node's parser drops what follows such a request. The service ignores Upgrade (RFC 9110 section 7.8).
  const names = before?.fields.filter((_, index) => index % 2 === 0).map(name => name.toLowerCase());
  if (names?.includes('upgrade')) return 'after a request with Upgrade';
  return undefined;
}
