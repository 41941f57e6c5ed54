import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { runOpenLoop } from '../test/harness/load.ts';
import { startServe } from '../test/harness/program.ts';
import { requestBytes } from '../test/harness/raw-connection.ts';
import { residentBytesOf } from '../test/harness/server-process.ts';
import { mebibytes } from './figures.ts';
import { type Ordeal, type OrdealResult, procObstacle } from './ordeal.ts';
import { hasSlowHttpTest, slowHeadersByOthers } from './slow-http-test.ts';
import { socketQueues } from './socket-queues.ts';

const IDLE = 10_000;
const SLOW_OF_EACH_KIND = 1_000;
/** Connected at a time: the system refuses what does not fit the queue of connections that were not accepted yet. */
const OPENED_AT_A_TIME = 200;
const DRIP_INTERVAL_MS = 2_000;
/** So many that at the rate below, and at the longest time they may take, one is always free for the next request. */
const ORDINARY_CLIENTS = 64;
const ORDINARY_P99_MS_MAX = 50;
const CUT_MS_MAX = 15_000;
/** Long answers, so that a few of them fill the buffers between the service and a client that reads nothing. */
const READER_NAME_LENGTH = 20_000;
/** A reader on which nothing moved for this long has filled them. */
const STALLED_MS = 2_500;
/** The queues of all sockets take the system 50 ms to list. */
const WATCH_INTERVAL_MS = 1_000;
/** Longer than it takes until the last of the slow ones is cut. */
const WATCHED_SECONDS = 18;
const ORDINARY_PER_SECOND = 500;

type OrdinaryResult = Awaited<ReturnType<typeof runOpenLoop>>;
type Kind = 'slow headers' | 'slow bodies' | 'slow readers';

/** A connection that was opened to be slow, and when it was cut. */
interface SlowConnection {
  kind: Kind;
  clientPort: number;
  /** From when it counts: of a reader, not later than the last time that anything moved on it. */
  sinceMs: number;
  cutMs: number | undefined;
}

export const slowClients: Ordeal = {
  name: 'slow-clients',
  summary: `${IDLE} idle connections and ${3 * SLOW_OF_EACH_KIND} slow ones, beside ordinary requests`,
  finds: [],
  obstacle: procObstacle,
  async run({ budgetMs, signal, tell }) {
    const folder = await mkdtemp(join(tmpdir(), 'plant-store-slow-'));
    const service = await startServe(`sqlite:${join(folder, 'plants.db')}`);
    const sockets: Socket[] = [];
    let watch: NodeJS.Timeout | undefined;
    try {
      const port = Number(new URL(service.url).port);
      // Idle behind an answer: a connection on which nothing ever came is one of the slow ones.
      await openAll(
        port,
        IDLE,
        sockets,
        socket => socket.write(requestBytes(service.token)) && socket.resume(),
      );
      const idle = sockets.slice();
      tell(`${IDLE} idle connections are open`);
      const slow: SlowConnection[] = [];
      watch = watchReaders(slow, port);
      const ordinary: OrdinaryResult[] = [];
      let idleLeft: number | undefined;
      const untilMs = performance.now() + Math.max(0, budgetMs - 60_000);
      do {
        for (const kind of ['slow readers', 'slow headers', 'slow bodies'] as const) {
          await openAll(port, SLOW_OF_EACH_KIND, sockets, socket =>
            slow.push(makeSlow(socket, kind, service.token)),
          );
          if (kind === 'slow readers') await readersStalled(slow);
        }
        tell(`${slow.length} slow connections so far`);
        ordinary.push(
          await runOpenLoop({
            ...{ url: service.url, token: service.token, connections: ORDINARY_CLIENTS },
            ...{ ratePerSecond: ORDINARY_PER_SECOND, seconds: WATCHED_SECONDS, signal },
          }),
        );
        idleLeft ??= idle.filter(({ readyState }) => readyState === 'open').length;
        await allCut(slow);
      } while (performance.now() < untilMs && !signal.aborted);
      const result = judge(slow, ordinary, idleLeft ?? 0);
      result.figures['peak of memory in MiB'] = mebibytes(residentBytesOf(service.child.pid!, 'VmHWM'));
      if (hasSlowHttpTest()) await askOthers(service.url, result, signal);
      else tell('Debian has slowhttptest, which is not on this machine: by clients of our own alone');
      return result;
    } finally {
      clearInterval(watch);
      for (const socket of sockets) socket.destroy();
      await service.stop('SIGTERM');
      await rm(folder, { recursive: true });
    }
  },
};

async function openAll(
  port: number,
  count: number,
  sockets: Socket[],
  opened: (socket: Socket) => void,
): Promise<void> {
  for (let open = 0; open < count; open += OPENED_AT_A_TIME) {
    await Promise.all(
      Array.from({ length: Math.min(OPENED_AT_A_TIME, count - open) }, async () => {
        const socket = connect(port, '127.0.0.1').on('error', () => {});
        sockets.push(socket);
        await once(socket, 'connect');
        opened(socket);
      }),
    );
  }
}

function makeSlow(socket: Socket, kind: Kind, token: string): SlowConnection {
  const sinceMs = performance.now();
  const connection: SlowConnection = { kind, clientPort: socket.localPort!, sinceMs, cutMs: undefined };
  const isCut = (): void => {
    connection.cutMs ??= performance.now() - connection.sinceMs;
  };
  // An answer is the refusal: nothing further is taken behind it.
  if (kind !== 'slow readers') socket.once('data', isCut);
  socket.on('end', isCut).on('close', isCut);
  const drip = (text: string): void => {
    const timer = setInterval(() => socket.writable && socket.write(text), DRIP_INTERVAL_MS);
    socket.on('close', () => clearInterval(timer)).on('end', () => clearInterval(timer));
  };
  if (kind === 'slow readers') readNothing(socket, token);
  else {
    if (kind === 'slow headers') socket.write('POST /plants HTTP/1.1\r\nHost: a\r\n');
    else socket.write(requestBytes(token, { headers: { 'Content-Length': '1000' }, body: '{' }));
    drip(kind === 'slow headers' ? 'A: b\r\n' : ' ');
  }
  return connection;
}

/** Asks for more than the buffers hold, and never reads. */
function readNothing(socket: Socket, token: string): void {
  socket.pause();
  const request = requestBytes(token, { body: `{"id":1,"name":"${'x'.repeat(READER_NAME_LENGTH)}"}` });
  const ask = (): void => void socket.write(request, error => error ?? ask());
  ask();
}

/**
 * Watches those of the readers that are not cut: where something has moved since the last look, the time counts from that
 * look, or from when it was opened. Buffers that grow when others are cut let some of them go on for a while.
 */
function watchReaders(slow: readonly SlowConnection[], serverPort: number): NodeJS.Timeout {
  let lastLookMs = performance.now();
  let last = new Map<number, string>();
  return setInterval(() => {
    const readers = slow.filter(({ kind, cutMs }) => kind === 'slow readers' && cutMs === undefined);
    if (readers.length === 0) return;
    const lookMs = performance.now();
    const queues = socketQueues(serverPort);
    for (const reader of readers) {
      const held = queues.get(reader.clientPort);
      if (held !== undefined && held !== last.get(reader.clientPort))
        reader.sinceMs = Math.max(reader.sinceMs, lastLookMs);
    }
    last = queues;
    lastLookMs = lookMs;
  }, WATCH_INTERVAL_MS);
}

/** Until then they are a load of their own, of hundreds of megabytes. */
async function readersStalled(readers: readonly SlowConnection[]): Promise<void> {
  const moves = ({ sinceMs, cutMs }: SlowConnection): boolean =>
    cutMs === undefined && performance.now() - sinceMs < STALLED_MS;
  const untilMs = performance.now() + 2 * CUT_MS_MAX;
  while (performance.now() < untilMs && readers.some(moves)) await wait(100);
}

/** Waits until all are cut, or for so long that those that are left never will be. */
async function allCut(slow: readonly SlowConnection[]): Promise<void> {
  const untilMs = performance.now() + 2 * CUT_MS_MAX;
  while (performance.now() < untilMs && slow.some(({ cutMs }) => cutMs === undefined)) await wait(100);
}

/** The same by a client that is not ours, which has no token: slow headers. */
async function askOthers(url: string, { faults, figures }: OrdealResult, signal: AbortSignal): Promise<void> {
  const { allCutSeconds, wasAvailable } = await slowHeadersByOthers(`${url}/plants`, SLOW_OF_EACH_KIND, {
    ...{ seconds: (2 * CUT_MS_MAX) / 1000, intervalSeconds: DRIP_INTERVAL_MS / 1000, signal },
  });
  figures['slow headers of slowhttptest'] =
    allCutSeconds === undefined ? 'some were never cut' : `the last was cut after ${allCutSeconds} s`;
  if (allCutSeconds === undefined || allCutSeconds > CUT_MS_MAX / 1000)
    faults.push(`slowhttptest: ${figures['slow headers of slowhttptest']}`);
  if (!wasAvailable) faults.push('slowhttptest: the service was not always there');
}

function judge(
  slow: readonly SlowConnection[],
  ordinary: readonly OrdinaryResult[],
  idleLeft: number,
): OrdealResult {
  const faults: string[] = [];
  const figures: OrdealResult['figures'] = { 'idle connections, open all through the first round': idleLeft };
  if (idleLeft < IDLE) faults.push(`${IDLE - idleLeft} idle connections were cut`);
  for (const [round, { requests, failures, unanswered, p50Us, p99Us, maxUs }] of ordinary.entries()) {
    const shown = [p50Us, p99Us, maxUs].map(us => (us / 1000).toFixed(1)).join(', ');
    figures[`round ${round + 1}, ordinary p50, p99, max in ms of ${requests}`] = shown;
    if (p99Us >= ORDINARY_P99_MS_MAX * 1000) faults.push(`p50, p99, max of ordinary requests: ${shown} ms`);
    if (failures + unanswered > 0) faults.push(`${failures + unanswered} ordinary requests failed`);
  }
  for (const [kind, connections] of Map.groupBy(slow, each => each.kind)) {
    const cut = connections.flatMap(({ cutMs }) => cutMs ?? []);
    const lastMs = Math.max(0, ...cut);
    figures[kind] =
      `${connections.length}, of which ${cut.length} were cut, the last after ${(lastMs / 1000).toFixed(1)} s`;
    if (cut.length < connections.length)
      faults.push(`${connections.length - cut.length} ${kind} were never cut`);
    if (lastMs > CUT_MS_MAX) faults.push(`one of the ${kind} was cut after ${Math.ceil(lastMs)} ms`);
  }
  return { faults, figures };
}
