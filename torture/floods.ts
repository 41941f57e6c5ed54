import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { LoggingClient } from '../test/harness/logging-client.ts';
import { startServe } from '../test/harness/program.ts';
import { residentBytesOf } from '../test/harness/server-process.ts';
import { median, quantile } from '../test/harness/statistics.ts';
import { mebibytes } from './figures.ts';
import { type Ordeal, type OrdealOrder, type OrdealResult, procObstacle } from './ordeal.ts';
import { steadySender } from './steady-sender.ts';

const FLOODER = fileURLToPath(new URL('./flooder.ts', import.meta.url));
const KINDS = [
  'plants',
  'long plants',
  'malformed tokens',
  'unknown tokens',
  'unusual heads',
  'other paths',
  'bytes as chunks',
  'long bodies',
] as const;
/** Of the time for one kind, before the flood begins. */
const ALONE_SHARE = 0.2;
/** The flood and the service share two cores. */
const P99_MS_MAX = 250;
const SHUTDOWN_MS_MAX = 10_000;
const RESIDENT_BYTES_MAX = 512 * 1024 * 1024;
/** A service that has not ended by then never does. */
const END_MS_MAX = 60_000;

export const floodsOrdeal: Ordeal = {
  name: 'floods',
  summary:
    'requests of the costliest kinds come as fast as they are taken: others go on, memory is bounded, it shuts down',
  finds: [],
  obstacle: procObstacle,
  async run(order) {
    const result: OrdealResult = { faults: [], figures: {} };
    for (const kind of KINDS) {
      if (order.signal.aborted) break;
      await flood(kind, order, result);
    }
    return result;
  },
};

async function flood(
  kind: (typeof KINDS)[number],
  { budgetMs, signal, tell }: OrdealOrder,
  { faults, figures }: OrdealResult,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-floods-'));
  const serve = await startServe(`sqlite:${join(folder, 'plants.db')}`);
  const log: LoggedRequest[] = [];
  const holder = new LoggingClient(serve.url, serve.token, log);
  const send = steadySender(holder, signal, 1n);
  const flooder = [FLOODER, kind, new URL(serve.url).port, serve.token];
  try {
    const kindMs = budgetMs / KINDS.length;
    const alone = await send(kindMs * ALONE_SHARE);
    const child = spawn(process.execPath, flooder, { stdio: 'pipe' });
    child.stderr.pipe(process.stderr);
    const output = readText(child.stdout);
    const beside = await send(kindMs * (1 - ALONE_SHARE));
    const residentBytes = residentBytesOf(serve.child.pid!, 'VmHWM');
    const late = setTimeout(() => serve.child.kill('SIGKILL'), END_MS_MAX);
    const beganMs = performance.now();
    const { exitCode } = await serve.stop('SIGTERM');
    const shutdownMs = performance.now() - beganMs;
    clearTimeout(late);
    child.stdin.end();
    const answers = JSON.parse((await output) || '{}') as Record<string, number>;

    const p99Ms = quantile(beside, 0.99);
    figures[kind] =
      `others alone ${times(alone)}, beside ${times(beside)}; ${mebibytes(residentBytes)} MiB; ` +
      `shut down in ${Math.round(shutdownMs)} ms; answered ${JSON.stringify(answers)}`;
    tell(`${kind}: ${figures[kind]}`);
    if (Object.keys(answers).length === 0) faults.push(`${kind}: nothing of the flood was answered`);
    const unkept = log.filter(({ answer }) => answer?.status !== 200).length;
    if (unkept > 0) faults.push(`${kind}: ${unkept} of ${log.length} plants of others were not answered 200`);
    if (p99Ms > P99_MS_MAX) faults.push(`${kind}: others wait: p99 ${Math.round(p99Ms)} ms`);
    if (residentBytes > RESIDENT_BYTES_MAX) faults.push(`${kind}: ${mebibytes(residentBytes)} MiB of memory`);
    if (exitCode !== 0 || shutdownMs > SHUTDOWN_MS_MAX)
      faults.push(`${kind}: it ended with ${exitCode} after ${Math.round(shutdownMs)} ms`);
  } finally {
    await holder.close();
    serve.child.kill('SIGKILL');
    await rm(folder, { recursive: true });
  }
}

function times(tookMs: number[]): string {
  const shown = [median(tookMs), quantile(tookMs, 0.99), Math.max(...tookMs)].map(ms => ms.toFixed(1));
  return `${shown.join(', ')} ms of ${tookMs.length}`;
}
