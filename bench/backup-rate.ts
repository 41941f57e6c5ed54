/**
 * What `backup` costs a service that takes plants with random ids meanwhile: creates a second without a backup and with one
 * after another, in turn, with the longest latency of each, and the longest the write-ahead log became.
 *
 *   node bench/backup-rate.ts [PLANTS] [ROUNDS]
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashToken, makeToken } from '../src/auth/token.ts';
import { openTokenStore } from '../src/store/open-store.ts';
import { type LoadResult, runLoad } from '../test/harness/load.ts';
import { runProgram, startServe } from '../test/harness/program.ts';
import { prefillStore } from './prefill.ts';

const CONNECTIONS = 64;
const SECONDS = 5;
const LOG_LOOK_INTERVAL_MS = 100;

const [plants = '10000000', rounds = '5'] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'plant-store-backup-rate-'));
const path = join(folder, 'plants.db');
const database = `sqlite:${path}`;
prefillStore(path, Number(plants));
const token = makeToken();
const tokens = await openTokenStore(database);
await tokens.createToken({ hash: hashToken(token), label: 'load', createdAt: Date.now(), expiresAt: null });
await tokens.close();
const serve = await startServe(database);
let logBytesMax = 0;
const looking = setInterval(() => {
  logBytesMax = Math.max(logBytesMax, statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0);
}, LOG_LOOK_INTERVAL_MS);
try {
  await load();
  const without: LoadResult[] = [];
  const beside: LoadResult[] = [];
  for (let round = 0; round < Number(rounds); round++) {
    without.push(await load());
    console.log(`without: ${shown(without.at(-1)!)}`);
    let isLoaded = false;
    const loading = load().finally(() => {
      isLoaded = true;
    });
    while (!isLoaded) console.log(await backUp());
    beside.push(await loading);
    console.log(`beside backups: ${shown(beside.at(-1)!)}`);
  }
  console.log(`${CONNECTIONS} connections, random ids, ${SECONDS} s each`);
  console.log(`creates/s beside backups, against without: ${(rate(beside) / rate(without)).toFixed(2)}`);
  console.log(`longest write-ahead log: ${Math.round(logBytesMax / 2 ** 20)} MiB`);
} finally {
  clearInterval(looking);
  await serve.stop('SIGTERM');
  rmSync(folder, { recursive: true });
}

function load(): Promise<LoadResult> {
  return runLoad({ url: serve.url, token, connections: CONNECTIONS, seconds: SECONDS, ids: 'random' });
}

async function backUp(): Promise<string> {
  const file = join(folder, 'backup.db');
  const { stdout, stderr } = await runProgram(['backup', file, '--database', database]);
  rmSync(file, { force: true });
  return (stdout || stderr).trim();
}

/** The middle one. */
function rate(results: readonly LoadResult[]): number {
  return results.map(({ ratePerSecond }) => ratePerSecond).toSorted((a, b) => a - b)[results.length >> 1]!;
}

function shown({ ratePerSecond, p99Us, maxUs, failures }: LoadResult): string {
  const latency = `p99 ${(p99Us / 1000).toFixed(1)} ms, longest ${(maxUs / 1000).toFixed(0)} ms`;
  return `${Math.round(ratePerSecond)} creates/s, ${latency}, ${failures} failures`;
}
