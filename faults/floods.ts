import { setTimeout as wait } from 'node:timers/promises';
import { Load, REQUEST_KINDS } from '../test/harness/load.ts';
import { residentBytesOf } from '../test/harness/process-memory.ts';
import { startServe } from '../test/harness/program.ts';
import { lateness, OtherClient, times } from './other-client.ts';
import { mebibytes, newSqliteFile, type Order, type Result, type Scenario } from './scenario.ts';

interface Kind {
  /** The expected status; 503 is allowed too. */
  status: string;
  /** By default 100. */
  connections?: number;
  /** By default as many as the service reads. */
  inFlightMax?: number;
  /** The limit for other clients, by default {@link P99_MAX_MS}. */
  p99MsMax?: number;
}

const KINDS: Record<(typeof REQUEST_KINDS)[number], Kind> = {
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
/** The flood and the service share two cores. */
const P50_MAX_MS = 100;
const P99_MAX_MS = 250;
const SHUTDOWN_MAX_MS = 10_000;
const RESIDENT_MAX_BYTES = 512 * 1024 * 1024;
/** Far longer than the first response takes. */
const RESPONSE_MAX_MS = 30_000;
/** Kills a service that does not end. */
const END_MAX_MS = 60_000;

export const floods: Scenario = {
  name: 'floods',
  summary: 'floods of expensive requests: others are served, memory is bounded, the shutdown is in time',
  needs: ['linux'],
  secondsMin: 10,
  finds: [],
  /** `roundsMax` is the number of kinds. */
  async run(order) {
    const result = { faults: [], late: [], measurements: {} };
    for (const kind of REQUEST_KINDS.slice(0, order.roundsMax)) {
      if (!order.signal.aborted) await flood(kind, order, result);
    }
    return result;
  },
};

async function flood(
  kind: keyof typeof KINDS,
  { budgetMs, signal, tell }: Order,
  { faults, late, measurements }: Required<Result>,
): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const serve = await startServe(`sqlite:${newSqliteFile(opened)}`);
  opened.defer(() => void serve.child.kill('SIGKILL'));
  const others = opened.use(new OtherClient(serve));
  const kindMs = budgetMs / REQUEST_KINDS.length;
  const alone = await others.sendFor(kindMs * ALONE_SHARE, signal);
  const { status, connections = 100, inFlightMax = Infinity, p99MsMax = P99_MAX_MS } = KINDS[kind];
  const { url, token } = serve;
  const flooding = opened.use(new Load({ kind, url, token, connections, inFlightMax }));
  const beside = await others.sendFor(kindMs * (1 - ALONE_SHARE), signal);
  // A short run ends before the first timeout of a body. On a busy machine, others need longer.
  const mustRespond = kind !== 'begun bodies';
  if (mustRespond) await Promise.race([flooding.responded, wait(RESPONSE_MAX_MS, undefined, { ref: false })]);
  const residentBytes = residentBytesOf(serve.child.pid!, 'VmHWM');
  const killing = setTimeout(() => serve.child.kill('SIGKILL'), END_MAX_MS);
  const beganMs = performance.now();
  // If it does not stop in time, its exit code is 1.
  const { exitCode } = await serve.stop('SIGTERM');
  const shutdownMs = performance.now() - beganMs;
  clearTimeout(killing);
  const { withRetryAfter, ...end } = await flooding.end();
  const ended = Object.entries(end.responses);
  const responses = Object.fromEntries(ended.map(([each, { count }]) => [each, count]));

  measurements[kind] =
    `others alone ${times(alone)}, beside ${times(beside)}; ${mebibytes(residentBytes)} MiB; ` +
    `shut down in ${Math.round(shutdownMs)} ms; responses ${JSON.stringify(responses)}`;
  tell(`${kind}: ${measurements[kind]}`);
  const expect = (holds: boolean, fault: string, list = faults): void => {
    if (!holds) list.push(`${kind}: ${fault}`);
  };
  const unexpected = Object.keys(responses).filter(each => each !== status && each !== '503');
  expect(unexpected.length === 0, `responses ${JSON.stringify(responses)}`);
  expect(status in responses || !mustRespond, `no response was ${status}`);
  expect(withRetryAfter === (responses[503] ?? 0), 'a response 503 has no Retry-After');
  for (const fault of others.faults()) expect(false, fault);
  for (const line of [...others.rejected(), ...lateness(beside, { p50: P50_MAX_MS, p99: p99MsMax })])
    expect(false, line, late);
  expect(residentBytes <= RESIDENT_MAX_BYTES, `${mebibytes(residentBytes)} MiB of memory`);
  expect(exitCode === 0, `it ended with ${exitCode}`);
  expect(shutdownMs <= SHUTDOWN_MAX_MS, `it ended after ${Math.round(shutdownMs)} ms`, late);
}
