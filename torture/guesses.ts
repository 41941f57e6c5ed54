import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { TOKEN_REFRESH_INTERVAL_MIN_MS } from '../src/contract/limits.ts';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { LoggingClient } from '../test/harness/logging-client.ts';
import { startServe } from '../test/harness/program.ts';
import { residentBytesOf } from '../test/harness/server-process.ts';
import { median, quantile } from '../test/harness/statistics.ts';
import { mebibytes } from './figures.ts';
import { type Ordeal, type OrdealOrder, type OrdealResult, procObstacle } from './ordeal.ts';
import { steadySender } from './steady-sender.ts';

const GUESSER = fileURLToPath(new URL('./guesser.ts', import.meta.url));
/** Of the budget: alone, and at the beginning of the guesses, before memory is looked at. */
const ALONE_SHARE = 0.25;
const WARM_UP_SHARE = 0.25;
/** Whoever had to wait for a look into the store would wait for half of the time between two. */
const MEDIAN_MS_MAX = TOKEN_REFRESH_INTERVAL_MIN_MS / 2;
const MEMORY_GROWTH_BYTES_MAX = 64 * 1024 * 1024;

/** Well-formed tokens that nobody made, beside the holder of a good one. */
export const guessesOrdeal: Ordeal = {
  name: 'guesses',
  summary: 'tokens are guessed at full speed: none is found, and the holder of a good one waits for nothing',
  finds: [],
  obstacle: procObstacle,
  run: runGuesses,
};

async function runGuesses({ budgetMs, signal, tell }: OrdealOrder): Promise<OrdealResult> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-guesses-'));
  const serve = await startServe(`sqlite:${join(folder, 'plants.db')}`);
  const pid = serve.child.pid!;
  const log: LoggedRequest[] = [];
  const holder = new LoggingClient(serve.url, serve.token, log);
  const send = steadySender(holder, signal, 0n);
  try {
    const alone = await send(budgetMs * ALONE_SHARE);
    tell(`alone: p50 ${median(alone).toFixed(1)} ms, p99 ${quantile(alone, 0.99).toFixed(1)} ms`);
    const child = spawn(process.execPath, [GUESSER, new URL(serve.url).port], { stdio: 'pipe' });
    child.stderr.pipe(process.stderr);
    const output = readText(child.stdout);
    const beganMs = performance.now();
    const warmUp = await send(budgetMs * WARM_UP_SHARE);
    const residentBytes = residentBytesOf(pid, 'VmRSS');
    const beside = [...warmUp, ...(await send(budgetMs * (1 - ALONE_SHARE - WARM_UP_SHARE)))];
    const growthBytes = residentBytesOf(pid, 'VmRSS') - residentBytes;
    const seconds = (performance.now() - beganMs) / 1000;
    child.stdin.end();
    const { refused, other } = JSON.parse(await output) as { refused: number; other: number };

    const faults: string[] = [];
    if (other > 0) faults.push(`${other} guesses were answered otherwise than 401`);
    if (refused === 0) faults.push('no guess was answered');
    const unkept = log.filter(({ answer }) => answer?.status !== 200).length;
    if (unkept > 0) faults.push(`${unkept} plants of the holder were not answered 200`);
    if (median(beside) > MEDIAN_MS_MAX) faults.push(`the holder waits: p50 ${median(beside).toFixed(0)} ms`);
    if (growthBytes > MEMORY_GROWTH_BYTES_MAX)
      faults.push(`memory grew by ${mebibytes(growthBytes)} MiB while tokens were guessed`);
    return {
      faults,
      figures: {
        'guesses refused': refused,
        'guesses/s': Math.round(refused / seconds),
        'holder alone, p50 and p99, ms': quantiles(alone),
        'holder beside guesses, p50 and p99, ms': quantiles(beside),
        'memory growth, MiB': (growthBytes / 1024 / 1024).toFixed(1),
      },
    };
  } finally {
    await holder.close();
    await serve.stop('SIGTERM');
    await rm(folder, { recursive: true });
  }
}

function quantiles(values: number[]): string {
  return `${median(values).toFixed(1)}, ${quantile(values, 0.99).toFixed(1)}`;
}
