/**
 * Brings a service to its limit and far beyond, over connections on which many requests are under way at a time; the
 * ordeal `overload` starts it as a process of its own. Takes an order as JSON on stdin, prints the result as JSON.
 */
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';

/** Of an overload between two loads that the service can hold. */
export interface OverloadOrder {
  port: number;
  token: string;
  /** Of the first plant, of 16 digits; each has the next one. */
  firstId: number;
  connections: number;
  /** On each connection, in the loads that the service can hold: the next is sent when one is answered. */
  windowRequests: number;
  /** In the overload, on all connections together. */
  underWayMax: number;
  warmUpSeconds: number;
  heldSeconds: number;
  overloadSeconds: number;
  /** How many times the held rate is sent in the overload, at its times, whatever becomes of it. */
  times: number;
}

/** What was answered to the requests that were sent in one phase. */
export interface PhaseResult {
  seconds: number;
  sent: number;
  /** Due, and not sent: the service did not read what was sent before, so the system took no more. */
  heldBack: number;
  /** By status. */
  answers: Record<string, number>;
  withRetryAfter: number;
  /** From the request's first byte to the answer's last, of those that were answered 200 and 503; to the ms. */
  accepted: Latencies;
  refused: Latencies;
  /** Answers 200 in each second of the phase, whenever they were sent. */
  keptEachSecond: number[];
}

export interface Latencies {
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

export type OverloadResult = Record<'held' | 'overload' | 'after', PhaseResult> & {
  connectionsLost: number;
  /** Sent on a connection that stayed open, and never answered. */
  unanswered: number;
};

/** What is due within this is sent together: single writes would cost this client more than the service. */
const TICK_MS = 5;
/** Behind the last phase, answers are waited for this long. */
const DRAIN_MS = 10_000;
const HEAD_END = '\r\n\r\n';
const LENGTH_FIELD = '\r\nContent-Length: ';
const BODY = ',"name":"Monstera deliciosa overload","tag":"houseplant"}';

class Phase {
  readonly name: string;
  readonly sinceMs = performance.now();
  sent = 0;
  heldBack = 0;
  answers: Record<string, number> = {};
  withRetryAfter = 0;
  accepted: number[] = [];
  refused: number[] = [];
  keptEachSecond: number[] = [];
  endMs = 0;
  constructor(name: string) {
    this.name = name;
  }
  result(): PhaseResult {
    const { sent, heldBack, answers, withRetryAfter } = this;
    return {
      ...{ sent, heldBack, answers, withRetryAfter, keptEachSecond: this.keptEachSecond },
      seconds: (this.endMs - this.sinceMs) / 1000,
      accepted: latencies(this.accepted),
      refused: latencies(this.refused),
    };
  }
}

interface Sent {
  atMs: number;
  phase: Phase;
  count: number;
}

interface Connection {
  socket: Socket;
  /** Oldest first; those that were written together share one. */
  sent: Sent[];
  unanswered: number;
  received: string;
}

const order = (await readJson(process.stdin)) as OverloadOrder;
const head =
  `POST /plants HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${order.token}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${String(order.firstId).length + 6 + BODY.length}\r\n\r\n{"id":`;
const connections: Connection[] = [];
let nextId = order.firstId;
let phase = new Phase('warm-up');
let isOpenLoop = false;
let connectionsLost = 0;

for (let count = 0; count < order.connections; count++) connections.push(await open());
console.log(JSON.stringify(await drive()));
process.exit();

async function drive(): Promise<OverloadResult> {
  for (const connection of connections) send(connection, order.windowRequests);
  await wait(order.warmUpSeconds * 1000);
  const held = begin('held');
  await wait(order.heldSeconds * 1000);
  const heldRate = sum(held.keptEachSecond) / ((performance.now() - held.sinceMs) / 1000);
  const overload = begin('overload');
  await overloadAt(heldRate * order.times, overload);
  const after = begin('after');
  for (const connection of connections) refill(connection);
  await wait(order.heldSeconds * 1000);
  begin('drain');
  isOpenLoop = true;
  const untilMs = performance.now() + DRAIN_MS;
  while (performance.now() < untilMs && sum(connections.map(each => each.unanswered)) > 0) await wait(10);
  const unanswered = sum(connections.map(each => each.unanswered));
  return {
    held: held.result(),
    overload: overload.result(),
    after: after.result(),
    connectionsLost,
    unanswered,
  };
}

function begin(name: string): Phase {
  phase.endMs = performance.now();
  phase = new Phase(name);
  return phase;
}

async function overloadAt(ratePerSecond: number, { sinceMs }: Phase): Promise<void> {
  isOpenLoop = true;
  let due = 0;
  let turn = 0;
  for (let nowMs = sinceMs; nowMs < sinceMs + order.overloadSeconds * 1000; nowMs = performance.now()) {
    const more = Math.floor(((nowMs - sinceMs) * ratePerSecond) / 1000) - due;
    due += more;
    const share = Math.ceil(more / connections.length);
    for (let left = more; left > 0; left -= share, turn++) {
      const connection = connections[turn % connections.length]!;
      if (connection.unanswered + share > order.underWayMax / connections.length)
        phase.heldBack += Math.min(share, left);
      else send(connection, Math.min(share, left));
    }
    await wait(TICK_MS);
  }
  isOpenLoop = false;
}

async function open(): Promise<Connection> {
  const socket = createConnection(order.port, '127.0.0.1').setNoDelay(true).setEncoding('latin1');
  await once(socket, 'connect');
  const connection: Connection = { socket, sent: [], unanswered: 0, received: '' };
  socket.on('data', (piece: string) => receive(connection, piece));
  socket.on('error', () => {});
  socket.on('close', () => connectionsLost++);
  return connection;
}

function send(connection: Connection, count: number): void {
  if (count <= 0) return;
  let text = '';
  for (let each = 0; each < count; each++) text += `${head}${nextId++}${BODY}`;
  connection.sent.push({ atMs: performance.now(), phase, count });
  connection.unanswered += count;
  phase.sent += count;
  connection.socket.write(text, 'latin1');
}

function refill(connection: Connection): void {
  if (!isOpenLoop) send(connection, order.windowRequests - connection.unanswered);
}

function receive(connection: Connection, piece: string): void {
  const received = connection.received + piece;
  const nowMs = performance.now();
  let start = 0;
  for (;;) {
    const headEnd = received.indexOf(HEAD_END, start);
    if (headEnd === -1) break;
    const length = Number.parseInt(
      received.slice(received.indexOf(LENGTH_FIELD, start) + LENGTH_FIELD.length),
      10,
    );
    const end = headEnd + HEAD_END.length + length;
    if (end > received.length) break;
    answered(connection, received.slice(start, headEnd + 2), nowMs);
    start = end;
  }
  connection.received = received.slice(start);
  refill(connection);
}

function answered(connection: Connection, answerHead: string, nowMs: number): void {
  const [oldest] = connection.sent;
  if (oldest === undefined) throw new Error('an answer that nobody asked for');
  connection.unanswered--;
  if (--oldest.count === 0) connection.sent.shift();
  const of = oldest.phase;
  const status = answerHead.slice(9, 12);
  of.answers[status] = (of.answers[status] ?? 0) + 1;
  const bin = Math.floor(nowMs - oldest.atMs);
  if (status === '200') {
    of.accepted[bin] = (of.accepted[bin] ?? 0) + 1;
    const second = Math.floor((nowMs - phase.sinceMs) / 1000);
    phase.keptEachSecond[second] = (phase.keptEachSecond[second] ?? 0) + 1;
  } else if (status === '503') {
    of.refused[bin] = (of.refused[bin] ?? 0) + 1;
    if (answerHead.includes('\r\nRetry-After: ')) of.withRetryAfter++;
  }
}

/** @param counts of the answers by whole milliseconds */
function latencies(counts: readonly number[]): Latencies {
  const filled = Array.from(counts, each => each ?? 0);
  const total = sum(filled);
  const at = (q: number): number => {
    let seen = 0;
    return filled.findIndex(each => {
      seen += each;
      return seen > 0 && seen >= q * total;
    });
  };
  return { p50Ms: at(0.5), p99Ms: at(0.99), maxMs: counts.length - 1 };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, each) => total + (each ?? 0), 0);
}
