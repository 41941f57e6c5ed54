/**
 * The thread of a {@link Load}. `workerData` is its order. It posts the result at the end of an open
 * loop, or after a message. Before, it posts `responded` at the first response.
 */
import { connect, type Socket } from 'node:net';
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setImmediate as pollSockets, setTimeout as wait } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { BODY_MAX_BYTES } from '../../src/core/contract/limits.ts';
import { makeToken } from '../../src/core/tokens/token.ts';
import type { LoadOrder, LoadResult, Responses } from './load.ts';
import { chunked, type RequestParts, requestBytes } from './raw-connection.ts';

const LONG_NAME_LENGTH = 20_000;
const CHUNKED_BODY_BYTES = 2_000;
/** Requests in one write. Single writes would take more CPU time than the service. */
const BLOCK_REQUESTS = 100;
/** The sleep between two checks of the clock and the sockets, the precision of an open loop. */
const SLEEP_MS = 0.1;
/** An open loop sends at its rate before the measurement, while V8 compiles this client. */
const WARM_UP_SECONDS = 1;
const CONNECT_MAX_MS = 5_000;
/** The delay before a new connection in place of a closed one. */
const RECONNECT_MS = 20;
/** How long to wait for responses after the last request. */
const DRAIN_MS = 10_000;
const LATENCIES_US = { lowest: 1, highest: 1e9, figures: 3 };
const HEADERS_END = '\r\n\r\n';
const LENGTH_FIELD = '\r\nContent-Length: ';

interface Connection {
  socket: Socket;
  /** The requests in flight, oldest first, with one entry for each write. */
  sent: { dueMs: number; count: number }[];
  inFlight: number;
  received: string;
}

/** The responses to the requests that were due in an interval. */
interface Interval {
  latenciesUs: Map<string, RecordableHistogram>;
  lost: number;
}

const order = workerData as LoadOrder;
const { inFlightMax = 1, intervalMs = Infinity } = order;
const blockRequests = Math.min(BLOCK_REQUESTS, inFlightMax);
const block = blocksOf(order);
const { hostname, port } = new URL(order.url);
const sleeper = new Int32Array(new SharedArrayBuffer(4));
const connections = new Set<Connection>();
const intervals = new Map<number, Interval>();
/** Requests that were due earlier are not counted. */
let countedFromMs = performance.now();
let withRetryAfter = 0;
let hasResponded = false;
let isOver = false;

for (let count = 0; count < order.connections; count++) open();
if (order.open === undefined) parentPort!.once('message', end);
else {
  await sendAtRate(order.open);
  await end();
}

async function end(): Promise<void> {
  isOver = true;
  const inFlight = (): number => Array.from(connections, each => each.inFlight).reduce((a, b) => a + b, 0);
  const untilMs = performance.now() + DRAIN_MS;
  while (performance.now() < untilMs && inFlight() > 0) await wait(10);
  parentPort!.postMessage(resultOf(inFlight()));
}

/** @returns a function that makes the bytes of 1 to {@link BLOCK_REQUESTS} requests */
function blocksOf({ kind = 'plants', token }: LoadOrder): (count: number) => Uint8Array {
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
      const [before, after] = String(
        requestBytes(token, { body: `{"id":${id},"name":"Monstera deliciosa"}` }),
      ).split(`${id}`);
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
        headers: { 'Content-Length': String(BODY_MAX_BYTES) },
        body: '',
      });
      const almost = Buffer.concat([headers, Buffer.alloc(BODY_MAX_BYTES - 1, ' ')]);
      return () => almost;
    }
    case 'many members': {
      // Short names, so that the body has almost the largest possible number of members.
      let members = '';
      for (let index = 0; members.length < BODY_MAX_BYTES - 100; index++)
        members += `,"a${index.toString(36)}":0`;
      return alike(token, { body: `{"id":1,"name":"f"${members}}` });
    }
  }
}

function open(): void {
  if (isOver) return;
  const socket = connect({ port: Number(port), host: hostname, noDelay: true }).setEncoding('latin1');
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
    connections.delete(connection);
    for (const { dueMs, count } of connection.sent) {
      if (dueMs >= countedFromMs) intervalAt(dueMs).lost += count;
    }
    setTimeout(open, RECONNECT_MS);
  });
}

/** A closed loop sends until `inFlightMax`, or until the socket buffer is full. */
function refill(connection: Connection): void {
  if (isOver || order.open !== undefined) return;
  const { socket } = connection;
  while (socket.writable && !socket.writableNeedDrain && connection.inFlight < inFlightMax)
    send(connection, Math.min(blockRequests, inFlightMax - connection.inFlight), performance.now());
}

function send(connection: Connection, count: number, dueMs: number): void {
  connection.sent.push({ dueMs, count });
  connection.inFlight += count;
  connection.socket.write(block(count));
}

/** Sends plants at a fixed rate, each on a connection that is free, and waits for no response. */
async function sendAtRate({ ratePerSecond, seconds }: NonNullable<LoadOrder['open']>): Promise<void> {
  const connectBeforeMs = performance.now() + CONNECT_MAX_MS;
  while (connections.size < order.connections && performance.now() < connectBeforeMs) await pollSockets();
  const startMs = performance.now();
  countedFromMs = startMs + WARM_UP_SECONDS * 1000;
  const requests = Math.floor(ratePerSecond * (WARM_UP_SECONDS + seconds));
  const endMs = countedFromMs + seconds * 1000 + DRAIN_MS;
  for (let sent = 0; sent < requests && performance.now() < endMs; ) {
    const due = Math.min(requests, Math.floor(((performance.now() - startMs) * ratePerSecond) / 1000) + 1);
    for (const connection of connections) {
      if (sent >= due) break;
      if (connection.inFlight < inFlightMax) send(connection, 1, startMs + (sent++ * 1000) / ratePerSecond);
    }
    await pollSockets();
    // A timer would wait for at least 1 ms, and a busy wait would take a core from the server.
    Atomics.wait(sleeper, 0, 0, SLEEP_MS);
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
    const responseEnd = headersEnd + HEADERS_END.length + Number.parseInt(length, 10);
    if (responseEnd > received.length) break;
    responded(connection, received.slice(start, headersEnd + 2), nowMs);
    start = responseEnd;
  }
  connection.received = received.slice(start);
  refill(connection);
}

function responded(connection: Connection, headers: string, nowMs: number): void {
  const [oldest] = connection.sent;
  if (oldest === undefined) throw new Error('a response without a request');
  if (!hasResponded) parentPort!.postMessage('responded');
  hasResponded = true;
  connection.inFlight--;
  if (--oldest.count === 0) connection.sent.shift();
  if (oldest.dueMs < countedFromMs) return;
  const { latenciesUs } = intervalAt(oldest.dueMs);
  const status = headers.slice(9, 12);
  const histogram = latenciesUs.get(status) ?? createHistogram(LATENCIES_US);
  latenciesUs.set(status, histogram);
  histogram.record(Math.max(1, Math.round((nowMs - oldest.dueMs) * 1000)));
  if (headers.includes('\r\nRetry-After: ')) withRetryAfter++;
}

function intervalAt(dueMs: number): Interval {
  const atMs = intervalMs === Infinity ? 0 : Math.floor((dueMs - countedFromMs) / intervalMs) * intervalMs;
  const interval = intervals.get(atMs) ?? { latenciesUs: new Map(), lost: 0 };
  intervals.set(atMs, interval);
  return interval;
}

function resultOf(pending: number): LoadResult {
  const total = new Map<string, RecordableHistogram>();
  for (const [status, histogram] of [...intervals.values()].flatMap(each => [...each.latenciesUs])) {
    const sum = total.get(status) ?? createHistogram(LATENCIES_US);
    sum.add(histogram);
    total.set(status, sum);
  }
  const timeline = [...intervals].sort(([one], [other]) => one - other);
  return {
    responses: responsesOf(total),
    timeline: timeline.map(([atMs, { latenciesUs, lost }]) => ({
      atMs,
      responses: responsesOf(latenciesUs),
      lost,
    })),
    withRetryAfter,
    lost: timeline.reduce((sum, [, { lost }]) => sum + lost, 0),
    pending,
  };
}

function responsesOf(latenciesUs: Interval['latenciesUs']): Record<string, Responses> {
  const shown = Array.from(latenciesUs, ([status, histogram]) => {
    const { count, max } = histogram;
    const [p50Us, p99Us] = [histogram.percentile(50), histogram.percentile(99)];
    return [status, { count, p50Us, p99Us, maxUs: max }] as const;
  });
  return Object.fromEntries(shown);
}
