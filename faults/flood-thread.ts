/**
 * The thread of a {@link Flood}. `workerData` is its order. After a message it posts the result.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { makeToken } from '../src/auth/token.ts';
import { chunked, type RequestParts, requestBytes } from '../test/harness/raw-connection.ts';
import type { FloodOrder, FloodResult } from './flood.ts';

/** The default body limit. */
const BODY_BYTES_MAX = 1024 * 1024;
const LONG_NAME_LENGTH = 20_000;
const CHUNKED_BODY_BYTES = 2_000;
/**
 * Requests in one write. With single writes this client would use more CPU time than the service.
 */
const BLOCK_REQUESTS = 100;
const TICK_MS = 5;
/** The delay before a new connection in place of a closed one. */
const RECONNECT_MS = 20;
/** How long to wait for responses after the last request. */
const DRAIN_MS = 10_000;
const HEADERS_END = '\r\n\r\n';
const LENGTH_FIELD = '\r\nContent-Length: ';

interface Connection {
  socket: Socket;
  /** The requests in flight, oldest first, with one entry for each write. */
  sent: { atMs: number; count: number }[];
  inFlight: number;
  received: string;
}

const order = workerData as FloodOrder;
const blockRequests = Math.min(BLOCK_REQUESTS, order.inFlightMax);
const block = blocksOf(order);
const connections = new Set<Connection>();
const sinceMs = performance.now();
/** For each status, the number of responses at the index of their latency in whole ms. */
const tookMs: Record<string, number[]> = {};
const storedEachSecond: number[] = [];
const counts = { withRetryAfter: 0, skipped: 0, connectionsLost: 0 };
let isOver = false;

for (let count = 0; count < order.connections; count++) open();
if (order.ratePerSecond !== undefined) void sendAtRate(order.ratePerSecond);
parentPort!.once('message', async () => {
  isOver = true;
  parentPort!.postMessage(await resultOf());
});

/** @returns a function that makes the bytes of 1 to {@link BLOCK_REQUESTS} requests */
function blocksOf({ kind, token }: FloodOrder): (count: number) => Uint8Array {
  const each = (request: () => string) => (count: number) =>
    Buffer.from(Array.from({ length: count }, request).join(''), 'latin1');
  const alike = (bearer: string, parts: RequestParts) => {
    const request = requestBytes(bearer, parts);
    const requests = Buffer.concat(new Array(blockRequests).fill(request));
    return (count: number) => requests.subarray(0, count * request.length);
  };
  const plant = (nameLength: number): string => `{"id":1,"name":"${'f'.repeat(nameLength)}"}`;
  switch (kind) {
    case 'plants': {
      // The time in µs, with 16 digits: no two runs use the same id.
      let id = Date.now() * 1000;
      const [before, after] = String(requestBytes(token, { body: `{"id":${id},"name":"flood"}` })).split(
        `${id}`,
      );
      return each(() => `${before}${++id}${after}`);
    }
    case 'unknown tokens':
      return each(() => String(requestBytes(makeToken())));
    case 'long plants':
      return alike(token, { body: plant(LONG_NAME_LENGTH) });
    case 'malformed tokens':
      return alike('a', { body: plant(1) });
    case 'unusual headers':
      return alike(token, { body: plant(1), headers: { 'X-Unusual': ' \t flood' } });
    case 'other paths':
      return alike(token, { method: 'GET', target: '/nowhere', body: '' });
    case 'one-byte chunks': {
      const chunks = Array.from(plant(CHUNKED_BODY_BYTES), byte => `1\r\n${byte}\r\n`).join('');
      return alike(token, { ...chunked(''), body: `${chunks}0\r\n\r\n` });
    }
    case 'begun bodies': {
      const headers = requestBytes(token, {
        headers: { 'Content-Length': String(BODY_BYTES_MAX) },
        body: '',
      });
      const almost = Buffer.concat([headers, Buffer.alloc(BODY_BYTES_MAX - 1, ' ')]);
      return () => almost;
    }
    case 'many members': {
      // Short names, so that the body has almost the largest possible number of members.
      let members = '';
      for (let index = 0; members.length < BODY_BYTES_MAX - 100; index++)
        members += `,"a${index.toString(36)}":0`;
      return alike(token, { body: `{"id":1,"name":"f"${members}}` });
    }
  }
}

function open(): void {
  if (isOver) return;
  const socket = connect({ port: order.port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1');
  const connection: Connection = { socket, sent: [], inFlight: 0, received: '' };
  socket.on('connect', () => {
    connections.add(connection);
    refill(connection);
  });
  socket.on('data', (text: string) => receive(connection, text));
  socket.on('drain', () => refill(connection));
  // A close follows each error.
  socket.on('error', () => {});
  socket.on('close', () => {
    if (connections.delete(connection)) counts.connectionsLost++;
    setTimeout(open, RECONNECT_MS);
  });
}

/** Sends until `inFlightMax`, or until the socket buffer is full. */
function refill(connection: Connection): void {
  if (isOver || order.ratePerSecond !== undefined) return;
  const { socket } = connection;
  while (socket.writable && !socket.writableNeedDrain && connection.inFlight < order.inFlightMax)
    send(connection, Math.min(blockRequests, order.inFlightMax - connection.inFlight));
}

function send(connection: Connection, count: number): void {
  connection.sent.push({ atMs: performance.now(), count });
  connection.inFlight += count;
  connection.socket.write(block(count));
}

/** Sends at the rate, divided among the connections. */
async function sendAtRate(ratePerSecond: number): Promise<void> {
  let due = 0;
  while (!isOver) {
    let left = Math.floor(((performance.now() - sinceMs) * ratePerSecond) / 1000) - due;
    due += left;
    const share = Math.min(blockRequests, Math.ceil(left / order.connections));
    while (left > 0 && connections.size > 0) {
      for (const connection of connections) {
        const count = Math.min(share, left);
        left -= count;
        if (connection.inFlight + count > order.inFlightMax) counts.skipped += count;
        else if (count > 0) send(connection, count);
      }
    }
    await wait(TICK_MS);
  }
}

function receive(connection: Connection, text: string): void {
  const received = connection.received + text;
  const nowMs = performance.now();
  let start = 0;
  for (;;) {
    const headersEnd = received.indexOf(HEADERS_END, start);
    if (headersEnd === -1) break;
    const length = received.slice(
      received.indexOf(LENGTH_FIELD, start) + LENGTH_FIELD.length,
      headersEnd + 2,
    );
    const end = headersEnd + HEADERS_END.length + Number.parseInt(length, 10);
    if (end > received.length) break;
    responded(connection, received.slice(start, headersEnd + 2), nowMs);
    start = end;
  }
  connection.received = received.slice(start);
  refill(connection);
}

function responded(connection: Connection, headers: string, nowMs: number): void {
  const [oldest] = connection.sent;
  if (oldest === undefined) throw new Error('a response without a request');
  connection.inFlight--;
  if (--oldest.count === 0) connection.sent.shift();
  const status = headers.slice(9, 12);
  tookMs[status] ??= [];
  count(tookMs[status], Math.floor(nowMs - oldest.atMs));
  if (status === '200') count(storedEachSecond, Math.floor((nowMs - sinceMs) / 1000));
  if (headers.includes('\r\nRetry-After: ')) counts.withRetryAfter++;
}

function count(counts: number[], index: number): void {
  counts[index] = (counts[index] ?? 0) + 1;
}

async function resultOf(): Promise<FloodResult> {
  const inFlight = (): number => sum(Array.from(connections, each => each.inFlight));
  const untilMs = performance.now() + DRAIN_MS;
  while (performance.now() < untilMs && inFlight() > 0) await wait(10);
  const statuses = Object.entries(tookMs);
  return {
    ...counts,
    responses: Object.fromEntries(statuses.map(([status, took]) => [status, sum(took)])),
    latencies: Object.fromEntries(
      statuses.map(([status, took]) => [
        status,
        { p50Ms: quantileOf(took, 0.5), p99Ms: quantileOf(took, 0.99) },
      ]),
    ),
    storedEachSecond: Array.from(storedEachSecond, each => each ?? 0),
    pending: inFlight(),
  };
}

/** @param took the number of responses at the index of their latency in ms */
function quantileOf(took: readonly number[], q: number): number {
  const total = sum(took);
  let seen = 0;
  return Array.from(took).findIndex(each => {
    seen += each ?? 0;
    return seen >= q * total;
  });
}

function sum(values: readonly number[]): number {
  return values.reduce((total, each) => total + (each ?? 0), 0);
}
