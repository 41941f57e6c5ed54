import { setTimeout as wait } from 'node:timers/promises';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { LoggingClient } from '../test/harness/logging-client.ts';
import { residentBytesOf } from '../test/harness/process-memory.ts';
import { startServe } from '../test/harness/program.ts';
import { median, quantile } from '../test/harness/statistics.ts';
import { FLOODS, Flood, type FloodOrder } from './flood.ts';
import { mebibytes, newSqliteFile, type Order, type Result, type Scenario } from './scenario.ts';

interface Kind {
  /** The expected status; 503 is allowed too. */
  status: string;
  /** By default 100. */
  connections?: number;
  /** By default as many as the service reads. */
  inFlightMax?: number;
  /** The limit for other clients, by default {@link P99_MS_MAX}. */
  p99MsMax?: number;
}

const KINDS: Record<FloodOrder['kind'], Kind> = {
  plants: { status: '200' },
  'long plants': { status: '200' },
  'malformed tokens': { status: '401' },
  // The service looks up the tokens of a connection one after the other.
  'unknown tokens': { status: '401', connections: 1_000, inFlightMax: 20 },
  'unusual headers': { status: '200' },
  'other paths': { status: '404' },
  'one-byte chunks': { status: '200' },
  // Each keeps an incomplete body until the timeout.
  'begun bodies': { status: '408', connections: 900, inFlightMax: 1 },
  // Few connections: even one body must not delay other clients.
  'many members': { status: '200', connections: 8, inFlightMax: 1, p99MsMax: 100 },
};
/** The share of the time of each kind before its flood begins. */
const ALONE_SHARE = 0.2;
/** The pause of the other client between a response and its next plant. */
const SEND_INTERVAL_MS = 5;
/** The flood and the service share two cores. */
const P50_MS_MAX = 100;
const P99_MS_MAX = 250;
const SHUTDOWN_MS_MAX = 10_000;
const RESIDENT_BYTES_MAX = 512 * 1024 * 1024;
/** Kills a service that does not end. */
const END_MS_MAX = 60_000;

export const floods: Scenario = {
  name: 'floods',
  summary: 'floods of expensive requests: others are served, memory is bounded, the shutdown is in time',
  needs: ['linux'],
  secondsMin: 10,
  finds: [],
  async run(order) {
    const result: Result = { faults: [], measurements: {} };
    for (const kind of FLOODS) {
      if (!order.signal.aborted) await flood(kind, order, result);
    }
    return result;
  },
};

async function flood(
  kind: FloodOrder['kind'],
  { budgetMs, signal, tell }: Order,
  { faults, measurements }: Result,
): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const serve = await startServe(`sqlite:${newSqliteFile(opened)}`);
  opened.defer(() => void serve.child.kill('SIGKILL'));
  const log: LoggedRequest[] = [];
  const others = new LoggingClient(serve.url, serve.token, log);
  opened.defer(() => others.close());
  const sendOthers = async (forMs: number): Promise<number[]> => {
    const begin = log.length;
    const untilMs = performance.now() + forMs;
    while (performance.now() < untilMs && !signal.aborted) {
      await others.send({ id: -1n - BigInt(log.length), name: 'other' });
      await wait(SEND_INTERVAL_MS);
    }
    return log.slice(begin).map(({ sentAt, respondedAt }) => respondedAt - sentAt);
  };

  const kindMs = budgetMs / FLOODS.length;
  const alone = await sendOthers(kindMs * ALONE_SHARE);
  const { status, connections = 100, inFlightMax = Infinity, p99MsMax = P99_MS_MAX } = KINDS[kind];
  const port = Number(new URL(serve.url).port);
  const flooding = opened.use(new Flood({ kind, port, token: serve.token, connections, inFlightMax }));
  const beside = await sendOthers(kindMs * (1 - ALONE_SHARE));
  const residentBytes = residentBytesOf(serve.child.pid!, 'VmHWM');
  const late = setTimeout(() => serve.child.kill('SIGKILL'), END_MS_MAX);
  const beganMs = performance.now();
  const { exitCode } = await serve.stop('SIGTERM');
  const shutdownMs = performance.now() - beganMs;
  clearTimeout(late);
  const { responses } = await flooding.end();

  measurements[kind] =
    `others alone ${times(alone)}, beside ${times(beside)}; ${mebibytes(residentBytes)} MiB; ` +
    `shut down in ${Math.round(shutdownMs)} ms; responses ${JSON.stringify(responses)}`;
  tell(`${kind}: ${measurements[kind]}`);
  const expect = (holds: boolean, fault: string): void => {
    if (!holds) faults.push(`${kind}: ${fault}`);
  };
  const unexpected = Object.keys(responses).filter(each => each !== status && each !== '503');
  expect(unexpected.length === 0, `responses ${JSON.stringify(responses)}`);
  // A short run ends before the first timeout of a body.
  expect(status in responses || kind === 'begun bodies', `no response was ${status}`);
  const notStored = log.filter(({ response }) => response?.status !== 200).length;
  expect(notStored === 0, `${notStored} of ${log.length} plants of others got no 200`);
  expect(median(beside) <= P50_MS_MAX, `others wait: median ${Math.round(median(beside))} ms`);
  expect(quantile(beside, 0.99) <= p99MsMax, `others wait: p99 ${Math.round(quantile(beside, 0.99))} ms`);
  expect(residentBytes <= RESIDENT_BYTES_MAX, `${mebibytes(residentBytes)} MiB of memory`);
  expect(
    exitCode === 0 && shutdownMs <= SHUTDOWN_MS_MAX,
    `it ended with ${exitCode} after ${Math.round(shutdownMs)} ms`,
  );
}

function times(tookMs: number[]): string {
  const shown = [median(tookMs), quantile(tookMs, 0.99), Math.max(...tookMs)].map(ms => ms.toFixed(1));
  return `${shown.join(', ')} ms of ${tookMs.length}`;
}
