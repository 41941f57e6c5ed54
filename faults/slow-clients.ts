import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { residentBytesOf } from '../test/harness/process-memory.ts';
import { startServe } from '../test/harness/program.ts';
import { RawConnection, requestBytes } from '../test/harness/raw-connection.ts';
import { storedRevisions } from '../test/harness/stored-revisions.ts';
import { lateness, OtherClient, times } from './other-client.ts';
import { mebibytes, newSqliteFile, type Result, type Scenario } from './scenario.ts';

const IDLE = 10_000;
/** Slow connections of each kind. */
const SLOW = 300;
/** Idle connections for each slow one of a kind, in a short run. */
const IDLE_FOR_EACH = 34;
/** Connections to open at a time, below the system's limit for connections that wait for accept. */
const OPENED_AT_A_TIME = 200;
const DRIP_INTERVAL_MS = 500;
const OTHERS = { p50: 50, p99: 50 };
/** From the first byte. For a reader from its last byte that the system accepted. */
const CUT_MAX_MS = { sender: 15_000, reader: 30_000 };
/** Much later: it is never cut. */
const NEVER_MS = 90_000;
/** The buffers are full if no request of a slow reader was sent for this time. */
const STALLED_MS = 2_500;
/** Far more than the buffers between a client and the service hold. */
const ACCEPTED_MAX_BYTES = 32 * 1024 * 1024;
/** The id of plants that must not be stored. */
const GHOST_ID = -1n;
const GHOST = `{"id":${GHOST_ID},"name":"A"}`;
const FIRST_HEADERS = 'POST /plants HTTP/1.1\r\nHost: a\r\n';

/** Begins a request. @returns the rest of the request, which is sent after the response */
type Begin = (connection: RawConnection, token: string) => string | Buffer | Promise<string>;

const SENDERS: Record<string, Begin> = {
  'first byte': (_, token) => requestBytes(token, { body: GHOST }),
  headers: connection => {
    connection.write(FIRST_HEADERS);
    return 'Host: a\r\n\r\n';
  },
  'headers, one twice a second': connection => drip(connection, FIRST_HEADERS, 'A: b\r\n'),
  body: (connection, token) => {
    const bytes = requestBytes(token, { body: GHOST });
    connection.write(bytes.subarray(0, -1));
    return '}';
  },
  'body in chunks, one twice a second': (connection, token) => {
    const headers = { 'Content-Length': null, 'Transfer-Encoding': 'chunked' };
    return drip(connection, requestBytes(token, { headers, body: '' }), '1\r\n \r\n');
  },
  'body after 100 (Continue)': async (connection, token) => {
    const headers = { Expect: '100-continue', 'Content-Length': String(GHOST.length) };
    connection.write(requestBytes(token, { headers, body: '' }));
    assert.equal((await connection.response()).status, 100);
    return GHOST;
  },
  'second request': async (connection, token) => {
    const second = requestBytes(token, { body: GHOST }).subarray(0, -1);
    connection.write(Buffer.concat([requestBytes(token), second]));
    assert.equal((await connection.response()).status, 200);
    return '}';
  },
};

/** The lengths of the names that slow readers send. Longer ones are read by a handler. */
const READER_NAME_LENGTHS = [10_000, 100_000];

/** Writes twice a second until the service closes the connection. */
function drip(connection: RawConnection, first: string | Buffer, drop: string): string {
  connection.write(first);
  const timer = setInterval(() => connection.write(drop), DRIP_INTERVAL_MS);
  void connection.ended.then(() => clearInterval(timer));
  return '';
}

/** The time of each slow client until it was cut, or why it broke a promise. */
interface Outcome {
  kind: string;
  tookMs?: number;
  fault?: string;
}

/** Waits until a slow client is cut. @param run returns when its timeout began */
async function outcomeOf(kind: string, run: Promise<number>): Promise<Outcome> {
  try {
    const sinceMs = await run;
    return { kind, tookMs: performance.now() - sinceMs };
  } catch (error) {
    return { kind, fault: (error as Error).message };
  }
}

async function inTime<T>(event: Promise<T>): Promise<T> {
  const never = async (): Promise<never> => {
    await wait(NEVER_MS, undefined, { ref: false });
    throw new Error('it is never cut');
  };
  return await Promise.race([event, never()]);
}

function assess(outcomes: readonly Outcome[], { faults, late, measurements }: Required<Result>): void {
  for (const [kind, alike] of Map.groupBy(outcomes, each => each.kind)) {
    const mostMs = kind in SENDERS ? CUT_MAX_MS.sender : CUT_MAX_MS.reader;
    const cutMs = alike.flatMap(({ tookMs }) => tookMs ?? []);
    const lastMs = Math.ceil(Math.max(0, ...cutMs));
    measurements[`slow ${kind}`] = `${cutMs.length} of ${alike.length} cut, the last after ${lastMs} ms`;
    if (lastMs > mostMs) late.push(`${kind}: cut after ${lastMs} ms`);
    faults.push(...alike.flatMap(({ fault }) => (fault === undefined ? [] : [`${kind}: ${fault}`])));
  }
}

export const slowClients: Scenario = {
  name: 'slow-clients',
  summary: `${IDLE} idle connections and ${SLOW} of each kind of slow ones, during other requests`,
  needs: ['linux'],
  secondsMin: 60,
  finds: [],
  /** `roundsMax` is the number of slow connections of each kind. */
  async run({ budgetMs, roundsMax = SLOW, signal, tell }) {
    await using opened = new AsyncDisposableStack();
    const database = `sqlite:${newSqliteFile(opened)}`;
    const serve = await startServe(database);
    opened.defer(async () => void (await serve.stop('SIGTERM')));
    const { url, token, child } = serve;
    const others = opened.use(new OtherClient(serve));
    const openMany = async (count: number): Promise<RawConnection[]> => {
      const connections: RawConnection[] = [];
      while (connections.length < count) {
        const more = Math.min(OPENED_AT_A_TIME, count - connections.length);
        const opening = Array.from({ length: more }, () => RawConnection.open(Number(new URL(url).port)));
        connections.push(...(await Promise.all(opening)).map(connection => opened.use(connection)));
      }
      return connections;
    };
    const result: Required<Result> = { faults: [], late: [], measurements: {} };
    const outcomes: Outcome[] = [];
    const idle = await openMany(Math.min(IDLE, roundsMax * IDLE_FOR_EACH));
    // Idle after a response. A connection without a request is slow.
    for (const connection of idle) connection.write(requestBytes(token));
    await Promise.all(idle.map(connection => connection.response()));
    tell(`${idle.length} idle connections are open`);
    const untilMs = performance.now() + budgetMs - 60_000;
    let round = 0;
    do {
      const pending: Promise<Outcome>[] = [];
      for (const nameLength of READER_NAME_LENGTHS) {
        const readers = (await openMany(roundsMax)).map(connection => new SlowReader(connection));
        const kind = `reader of ${nameLength} bytes`;
        pending.push(...readers.map(reader => outcomeOf(kind, reader.run(token, nameLength))));
        // Before that, they are a load of hundreds of megabytes.
        while (!readers.every(reader => reader.isStalled())) await wait(100);
      }
      for (const [kind, begin] of Object.entries(SENDERS))
        for (const connection of await openMany(roundsMax))
          pending.push(outcomeOf(kind, beSlow(begin, connection, token)));
      const tookMs = await others.sendFor(CUT_MAX_MS.sender, signal);
      result.measurements[`round ${++round}, others p50, p99, max`] = times(tookMs);
      result.late.push(...lateness(tookMs, OTHERS));
      const idleLeft = idle.filter(({ socket }) => socket.readyState === 'open').length;
      // Later rounds are longer than the timeout of idle connections.
      if (round === 1 && idleLeft < idle.length)
        result.faults.push(`${idle.length - idleLeft} idle connections were cut`);
      outcomes.push(...(await Promise.all(pending)));
    } while (performance.now() < untilMs && !signal.aborted);
    result.faults.push(...others.faults());
    result.late.push(...others.rejected());
    const ghosts = (await storedRevisions(database)).filter(({ plant }) => plant.id === GHOST_ID);
    if (ghosts.length > 0) result.faults.push(`${ghosts.length} plants of slow clients are stored`);
    assess(outcomes, result);
    result.measurements['peak of memory in MiB'] = mebibytes(residentBytesOf(child.pid!, 'VmHWM'));
    return result;
  },
};

/** @returns when the timeout began */
async function beSlow(begin: Begin, connection: RawConnection, token: string): Promise<number> {
  const sinceMs = performance.now();
  const rest = await begin(connection, token);
  assert.equal((await inTime(connection.response())).status, 408);
  connection.write(rest);
  // Not reset, which would delete the response.
  assert.equal(await inTime(connection.ended), 'closed');
  assert.equal(connection.unread, '');
  return sinceMs;
}

/** Sends requests more than the buffers can hold, and never reads. */
class SlowReader {
  readonly #connection: RawConnection;
  #acceptedMs = performance.now();

  constructor(connection: RawConnection) {
    this.#connection = connection;
  }

  /** @returns when the system accepted the last request */
  async run(token: string, nameLength: number): Promise<number> {
    const { socket } = this.#connection;
    socket.pause();
    const request = requestBytes(token, { body: `{"id":${nameLength},"name":"${'x'.repeat(nameLength)}"}` });
    let acceptedBytes = 0;
    const isAccepted = (): Promise<boolean> =>
      new Promise(resolve => socket.write(request, error => resolve(error === null || error === undefined)));
    while (await inTime(isAccepted())) {
      this.#acceptedMs = performance.now();
      acceptedBytes += request.length;
      assert.ok(acceptedBytes < ACCEPTED_MAX_BYTES, `${acceptedBytes} bytes were accepted`);
    }
    return this.#acceptedMs;
  }

  isStalled(): boolean {
    return performance.now() - this.#acceptedMs > STALLED_MS;
  }
}
