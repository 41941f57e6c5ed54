import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { runOpenLoop } from '../test/harness/load.ts';
import { residentBytesOf } from '../test/harness/process-memory.ts';
import { startServe } from '../test/harness/program.ts';
import { requestBytes } from '../test/harness/raw-connection.ts';
import { mebibytes, newSqliteFile, type Result, type Scenario } from './scenario.ts';

const IDLE = 10_000;
const SLOW_OF_EACH_KIND = 1_000;
/** Connections to open at a time, below the system's limit for connections that wait for accept. */
const OPENED_AT_A_TIME = 200;
const DRIP_INTERVAL_MS = 2_000;
/** Enough for the rate below at the longest allowed latency. */
const OTHER_CLIENTS = 64;
const OTHERS_PER_SECOND = 500;
const OTHERS_P99_MS_MAX = 50;
/** Longer than the timeout of the slow connections. */
const WATCHED_SECONDS = 18;
/** Long responses: a few fill the buffers between the service and a client that does not read. */
const READER_NAME_LENGTH = 20_000;
/** The buffers are full if no request of a slow reader was sent for this time. */
const STALLED_MS = 2_500;
/**
 * From the first byte, or for a reader from its last sent byte. Later the system can still move
 * bytes between its buffers, which delays the timeout of a reader.
 * `test/http/http-slow-clients.test.ts` checks its exact time.
 */
const CUT_MS_MAX = { 'slow headers': 15_000, 'slow bodies': 15_000, 'slow readers': 30_000 };

type Kind = keyof typeof CUT_MS_MAX;

/** A slow connection. */
interface SlowConnection {
  kind: Kind;
  /** The start of its timeout. */
  sinceMs: number;
  cutMs: number | undefined;
}

export const slowClients: Scenario = {
  name: 'slow-clients',
  summary: `${IDLE} idle connections and ${3 * SLOW_OF_EACH_KIND} slow ones, during other requests`,
  needs: ['linux'],
  secondsMin: 60,
  finds: [],
  async run({ budgetMs, signal, tell }) {
    await using opened = new AsyncDisposableStack();
    const { url, token, child, stop } = await startServe(`sqlite:${newSqliteFile(opened)}`);
    opened.defer(async () => void (await stop('SIGTERM')));
    const port = Number(new URL(url).port);
    const sockets: Socket[] = [];
    opened.defer(() => {
      for (const socket of sockets) socket.destroy();
    });
    const openAll = async (count: number, start: (socket: Socket) => void): Promise<void> => {
      for (let open = 0; open < count; open += OPENED_AT_A_TIME)
        await Promise.all(
          Array.from({ length: OPENED_AT_A_TIME }, async () => {
            const socket = connect(port, '127.0.0.1').on('error', () => {});
            sockets.push(socket);
            await once(socket, 'connect');
            start(socket);
          }),
        );
    };

    const result: Result = { faults: [], measurements: {} };
    // Idle after a response. A connection without a request counts as slow.
    await openAll(IDLE, socket => socket.resume().write(requestBytes(token)));
    tell(`${IDLE} idle connections are open`);
    const slow: SlowConnection[] = [];
    const untilMs = performance.now() + Math.max(0, budgetMs - 60_000);
    do {
      for (const kind of ['slow readers', 'slow headers', 'slow bodies'] as const) {
        await openAll(SLOW_OF_EACH_KIND, socket => slow.push(makeSlow(socket, kind, token)));
        // Before that, they are a load of hundreds of megabytes.
        if (kind === 'slow readers') await stalled(slow);
      }
      tell(`${slow.length} slow connections so far`);
      const load = { url, token, connections: OTHER_CLIENTS, ratePerSecond: OTHERS_PER_SECOND };
      assessOthers(await runOpenLoop({ ...load, seconds: WATCHED_SECONDS, signal }), result);
      const idleLeft = sockets.slice(0, IDLE).filter(({ readyState }) => readyState === 'open').length;
      if (slow.length === 3 * SLOW_OF_EACH_KIND && idleLeft < IDLE)
        result.faults.push(`${IDLE - idleLeft} idle connections were cut`);
      await allCut(slow);
    } while (performance.now() < untilMs && !signal.aborted);
    assessSlow(slow, result);
    result.measurements['peak of memory in MiB'] = mebibytes(residentBytesOf(child.pid!, 'VmHWM'));
    return result;
  },
};

function makeSlow(socket: Socket, kind: Kind, token: string): SlowConnection {
  const connection: SlowConnection = { kind, sinceMs: performance.now(), cutMs: undefined };
  const isCut = (): void => {
    connection.cutMs ??= performance.now() - connection.sinceMs;
  };
  socket.on('end', isCut).on('close', isCut);
  if (kind === 'slow readers') {
    // Requests more than the buffers can hold, and never reads.
    socket.pause();
    const request = requestBytes(token, { body: `{"id":1,"name":"${'x'.repeat(READER_NAME_LENGTH)}"}` });
    const ask = (): void => {
      connection.sinceMs = performance.now();
      socket.write(request, error => error ?? ask());
    };
    ask();
    return connection;
  }
  // A response rejects the slow request, and the service reads no more.
  socket.once('data', isCut);
  if (kind === 'slow headers') socket.write('POST /plants HTTP/1.1\r\nHost: a\r\n');
  else socket.write(requestBytes(token, { headers: { 'Content-Length': '1000' }, body: '{' }));
  const drop = kind === 'slow headers' ? 'A: b\r\n' : ' ';
  const drip = setInterval(() => socket.writable && socket.write(drop), DRIP_INTERVAL_MS);
  socket.on('close', () => clearInterval(drip)).on('end', () => clearInterval(drip));
  return connection;
}

async function stalled(readers: readonly SlowConnection[]): Promise<void> {
  const moves = ({ sinceMs, cutMs }: SlowConnection): boolean =>
    cutMs === undefined && performance.now() - sinceMs < STALLED_MS;
  const untilMs = performance.now() + CUT_MS_MAX['slow readers'];
  while (performance.now() < untilMs && readers.some(moves)) await wait(100);
}

/** Waits until all are cut, at most for the longest timeout. */
async function allCut(slow: readonly SlowConnection[]): Promise<void> {
  const untilMs = performance.now() + CUT_MS_MAX['slow readers'];
  while (performance.now() < untilMs && slow.some(({ cutMs }) => cutMs === undefined)) await wait(100);
}

function assessOthers(
  { requests, failures, pending, p50Us, p99Us, maxUs }: Awaited<ReturnType<typeof runOpenLoop>>,
  { faults, measurements }: Result,
): void {
  const shown = [p50Us, p99Us, maxUs].map(us => (us / 1000).toFixed(1)).join(', ');
  const round = Object.keys(measurements).length + 1;
  measurements[`round ${round}, others p50, p99, max in ms of ${requests}`] = shown;
  if (p99Us >= OTHERS_P99_MS_MAX * 1000) faults.push(`p50, p99, max of others: ${shown} ms`);
  if (failures + pending > 0) faults.push(`${failures + pending} requests of others failed`);
}

function assessSlow(slow: readonly SlowConnection[], { faults, measurements }: Result): void {
  for (const [kind, connections] of Map.groupBy(slow, each => each.kind)) {
    const cut = connections.flatMap(({ cutMs }) => cutMs ?? []);
    const lastMs = Math.max(0, ...cut);
    measurements[kind] =
      `${connections.length}, of which ${cut.length} were cut, the last after ${(lastMs / 1000).toFixed(1)} s`;
    if (cut.length < connections.length)
      faults.push(`${connections.length - cut.length} ${kind} were never cut`);
    if (lastMs > CUT_MS_MAX[kind])
      faults.push(`one of the ${kind} was cut only after ${Math.ceil(lastMs)} ms`);
  }
}
