/**
 * Creates plants over raw keep-alive connections. With a rate in its order it is an open loop,
 * without one a closed loop. load.ts starts it as a process. It reads an order as JSON from stdin
 * and prints the result as JSON.
 */
import { randomInt } from 'node:crypto';
import { createConnection, type Socket } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { setImmediate as pollSockets, setTimeout as wait } from 'node:timers/promises';
import type { LoadOrder, OpenLoopResult } from './load.ts';
import { quantile } from './statistics.ts';

/**
 * The sleep between two checks of the clock and the sockets. It limits the precision of a latency.
 */
const SLEEP_MS = 0.1;
/** How long to wait for responses after the last request. */
const DRAIN_MS = 2_000;
/** Requests at the same rate before the measurement, while V8 compiles this client. */
const WARM_UP_SECONDS = 1;
/** The delay before a new connection in place of one that was cut. */
const RECONNECT_MS = 100;
const CONNECT_MS_MAX = 5_000;

interface Connection {
  socket: Socket;
  /** When the request in flight was due. */
  dueMs: number | undefined;
  received: string;
}

const order = (await readJson(process.stdin)) as LoadOrder;
const { hostname, port } = new URL(order.url);
const HEADERS =
  `POST /plants HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${order.token}\r\n` +
  'Content-Type: application/json\r\n';
const SLEEPER = new Int32Array(new SharedArrayBuffer(4));
const free: Connection[] = [];
/** Results of the measured requests. */
const counted = { latenciesUs: [] as number[], failures: 0 };
/**
 * The same for the requests that were due in each interval of the timeline, if the order has one.
 */
const intervals = new Map<number, typeof counted>();
let sent = 0;
/** Requests that were due earlier are not counted. */
let countedFromMs = Number.POSITIVE_INFINITY;
let isOver = false;

for (let count = 0; count < order.connections; count++) connect();
const connectBeforeMs = performance.now() + CONNECT_MS_MAX;
while (free.length < order.connections && performance.now() < connectBeforeMs) await pollSockets();
const due =
  order.ratePerSecond === undefined ? await driveClosedLoop() : await driveOpenLoop(order.ratePerSecond);
isOver = true;
console.log(JSON.stringify(resultOf(due)));
process.exit();

/** @returns the number of requests that were due */
async function driveClosedLoop(): Promise<number> {
  countedFromMs = performance.now();
  for (const connection of free.splice(0)) send(connection, countedFromMs);
  await wait(order.seconds * 1000);
  return endedCount();
}

async function driveOpenLoop(ratePerSecond: number): Promise<number> {
  const skipped = Math.floor(ratePerSecond * WARM_UP_SECONDS);
  const requests = Math.floor(ratePerSecond * order.seconds);
  const intervalMs = 1000 / ratePerSecond;
  const startMs = performance.now();
  countedFromMs = startMs + skipped * intervalMs;
  const endMs = countedFromMs + requests * intervalMs + DRAIN_MS;
  while (endedCount() < requests && performance.now() < endMs) {
    const dueNow = Math.min(skipped + requests, Math.floor((performance.now() - startMs) / intervalMs) + 1);
    while (sent < dueNow && free.length > 0) send(free.shift()!, startMs + sent * intervalMs);
    await pollSockets();
    // A timer would wait for at least 1 ms, and a busy wait would take a core from the server.
    Atomics.wait(SLEEPER, 0, 0, SLEEP_MS);
  }
  return requests;
}

function endedCount(): number {
  return counted.latenciesUs.length + counted.failures;
}

function resultOf(requests: number): OpenLoopResult {
  const { latenciesUs, failures } = counted;
  return {
    requests: latenciesUs.length,
    ratePerSecond: latenciesUs.length / order.seconds,
    p50Us: quantile(latenciesUs, 0.5),
    p99Us: quantile(latenciesUs, 0.99),
    maxUs: quantile(latenciesUs, 1),
    failures,
    pending: requests - endedCount(),
    timeline: [...intervals]
      .sort(([a], [b]) => a - b)
      .map(([atMs, interval]) => ({
        atMs,
        // NaN, which is null in JSON, if every request failed.
        p50Us: quantile(interval.latenciesUs, 0.5),
        maxUs: quantile(interval.latenciesUs, 1),
        failures: interval.failures,
      })),
  };
}

function connect(): void {
  const socket = createConnection(Number(port), hostname).setNoDelay(true).setEncoding('latin1');
  const connection: Connection = { socket, dueMs: undefined, received: '' };
  socket.on('connect', () => release(connection));
  socket.on('data', chunk => receive(connection, chunk.toString()));
  // A close follows each error.
  socket.on('error', () => {});
  socket.on('close', () => {
    if (isOver) return;
    if (connection.dueMs !== undefined) end(connection.dueMs, undefined);
    const index = free.indexOf(connection);
    if (index >= 0) free.splice(index, 1);
    setTimeout(connect, RECONNECT_MS);
  });
}

function send(connection: Connection, dueMs: number): void {
  connection.dueMs = dueMs;
  const digits = String(order.firstId + ++sent);
  // From 10^18 to below 922 * 10^16, in two halves: a number is not exact for 19 digits.
  const id =
    order.ids === 'ascending'
      ? digits
      : `${randomInt(100_000_000, 922_000_000)}${String(randomInt(10_000_000_000)).padStart(10, '0')}`;
  const plant = `{"id":${id},"name":"Monstera deliciosa ${digits}","tag":"houseplant"}`;
  connection.socket.write(`${HEADERS}Content-Length: ${plant.length}\r\n\r\n${plant}`);
}

/** A response ends after Content-Length bytes. Every measured server sends this header. */
function receive(connection: Connection, chunk: string): void {
  connection.received += chunk;
  const { received, dueMs } = connection;
  const bodyStart = received.indexOf('\r\n\r\n') + 4;
  const bodyBytes = Number(/\r\ncontent-length: *([0-9]+)/i.exec(received)?.[1]);
  if (bodyStart < 4 || dueMs === undefined || received.length < bodyStart + bodyBytes) return;
  end(dueMs, received.startsWith('HTTP/1.1 2') ? (performance.now() - dueMs) * 1000 : undefined);
  connection.dueMs = undefined;
  connection.received = '';
  release(connection);
}

/** A closed loop sends the next plant at once, after its start. */
function release(connection: Connection): void {
  const isClosedLoop = order.ratePerSecond === undefined && countedFromMs !== Number.POSITIVE_INFINITY;
  if (isClosedLoop && !isOver) send(connection, performance.now());
  else free.push(connection);
}

function end(dueMs: number, latencyUs: number | undefined): void {
  if (dueMs < countedFromMs) return;
  const counts = [counted];
  const { timelineIntervalMs } = order;
  if (timelineIntervalMs !== undefined) {
    const atMs = Math.floor((dueMs - countedFromMs) / timelineIntervalMs) * timelineIntervalMs;
    const interval = intervals.get(atMs) ?? { latenciesUs: [], failures: 0 };
    intervals.set(atMs, interval);
    counts.push(interval);
  }
  for (const count of counts) {
    if (latencyUs === undefined) count.failures++;
    else count.latenciesUs.push(latencyUs);
  }
}
