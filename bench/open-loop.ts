/**
 * Drives an open loop over raw keep-alive connections; runOpenLoop of load.ts starts it as a process of its own. Takes
 * an order as JSON on stdin and prints the result as JSON.
 */
import { createConnection, type Socket } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { setImmediate as pollSockets } from 'node:timers/promises';
import type { LoadOrder } from '../test/harness/load.ts';
import { quantile } from '../test/harness/statistics.ts';
import { plantMaker } from './create-requests.ts';

/** It sleeps for this long between looks at the clock and the sockets, so a latency is exact to about as much. */
const SLEEP_MS = 0.1;
/** How long answers are waited for behind the last request that is due. */
const DRAIN_MS = 2_000;
/** Requests before the first that counts, at the same rate: this client has to be compiled too. */
const WARM_UP_SECONDS = 1;
/** A connection that was cut is opened again after this. */
const RECONNECT_MS = 100;
const CONNECT_MS_MAX = 5_000;

interface Connection {
  socket: Socket;
  /** Of the request that is on its way. */
  dueMs: number | undefined;
  received: string;
}

const order = (await readJson(process.stdin)) as LoadOrder & { ratePerSecond: number };
const { hostname, port } = new URL(order.url);
const nextPlant = plantMaker(order);
const heads = order.tokens.map(
  token =>
    `POST /plants HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`,
);
const SLEEPER = new Int32Array(new SharedArrayBuffer(4));
const free: Connection[] = [];
const latenciesUs: number[] = [];
let sent = 0;
let failures = 0;
/** What is due earlier is sent and not counted. */
let countedFromMs = Number.POSITIVE_INFINITY;
let isOver = false;

console.log(JSON.stringify(await drive()));
process.exit();

async function drive() {
  for (let count = 0; count < order.connections; count++) connect();
  const connectBeforeMs = performance.now() + CONNECT_MS_MAX;
  while (free.length < order.connections && performance.now() < connectBeforeMs) await pollSockets();

  const skipped = Math.floor(order.ratePerSecond * WARM_UP_SECONDS);
  const requests = Math.floor(order.ratePerSecond * order.seconds);
  const intervalMs = 1000 / order.ratePerSecond;
  const startMs = performance.now();
  countedFromMs = startMs + skipped * intervalMs;
  const endMs = countedFromMs + requests * intervalMs + DRAIN_MS;
  while (latenciesUs.length + failures < requests && performance.now() < endMs) {
    const due = Math.min(skipped + requests, Math.floor((performance.now() - startMs) / intervalMs) + 1);
    while (sent < due && free.length > 0) send(free.shift()!, startMs + sent * intervalMs);
    await pollSockets();
    sleep();
  }
  isOver = true;

  return {
    requests: latenciesUs.length,
    ratePerSecond: latenciesUs.length / order.seconds,
    p50Us: quantile(latenciesUs, 0.5),
    p99Us: quantile(latenciesUs, 0.99),
    p999Us: quantile(latenciesUs, 0.999),
    maxUs: quantile(latenciesUs, 1),
    failures,
    unanswered: requests - latenciesUs.length - failures,
  };
}

function connect(): void {
  const socket = createConnection(Number(port), hostname).setNoDelay(true).setEncoding('latin1');
  const connection: Connection = { socket, dueMs: undefined, received: '' };
  socket.on('connect', () => free.push(connection));
  socket.on('data', chunk => receive(connection, chunk.toString()));
  // A close follows each error.
  socket.on('error', () => {});
  socket.on('close', () => {
    if (isOver) return;
    if (connection.dueMs !== undefined && connection.dueMs >= countedFromMs) failures++;
    const index = free.indexOf(connection);
    if (index >= 0) free.splice(index, 1);
    setTimeout(connect, RECONNECT_MS);
  });
}

function send(connection: Connection, dueMs: number): void {
  connection.dueMs = dueMs;
  const plant = nextPlant();
  connection.socket.write(`${heads[sent % heads.length]}Content-Length: ${plant.length}\r\n\r\n${plant}`);
  sent++;
}

/** An answer ends after the bytes that its Content-Length says; all the subjects send one. */
function receive(connection: Connection, chunk: string): void {
  connection.received += chunk;
  const { received, dueMs } = connection;
  const bodyStart = received.indexOf('\r\n\r\n') + 4;
  const bodyBytes = Number(/\r\ncontent-length: *([0-9]+)/i.exec(received)?.[1]);
  if (bodyStart < 4 || dueMs === undefined || received.length < bodyStart + bodyBytes) return;
  if (dueMs >= countedFromMs) {
    if (received.startsWith('HTTP/1.1 2')) latenciesUs.push((performance.now() - dueMs) * 1000);
    else failures++;
  }
  connection.dueMs = undefined;
  connection.received = '';
  free.push(connection);
}

/** Not a timer, which waits for 1 ms or more, and not a busy wait, which takes a core from the server. */
function sleep(): void {
  Atomics.wait(SLEEPER, 0, 0, SLEEP_MS);
}
