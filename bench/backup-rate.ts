/**
 * What `backup` costs a service that takes plants with random ids meanwhile: creates a second before it, while it runs
 * and after it, with the longest latency of each, and the longest the write-ahead log became.
 *
 *   node bench/backup-rate.ts [PLANTS]
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashToken, makeToken } from '../src/auth/token.ts';
import { openTokenStore } from '../src/store/open-store.ts';
import { runProgram, startServe } from '../test/program.ts';
import { type LoadResult, runLoad } from './load.ts';
import { prefillStore } from './prefill.ts';

const CONNECTIONS = 64;
const SECONDS = 5;
const LOG_LOOK_INTERVAL_MS = 100;

const [plants = '10000000'] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'plant-store-backup-rate-'));
const path = join(folder, 'plants.db');
prefillStore(path, Number(plants));
const token = makeToken();
const tokens = await openTokenStore(`sqlite:${path}`);
await tokens.createToken({ hash: hashToken(token), label: 'load', createdAt: Date.now(), expiresAt: null });
await tokens.close();
const serve = await startServe(`sqlite:${path}`);
try {
  const load = (): Promise<LoadResult> =>
    runLoad({ url: serve.url, token, connections: CONNECTIONS, seconds: SECONDS, ids: 'random' });
  await load();
  const before = [await load(), await load()];
  let logBytesMax = 0;
  const looking = setInterval(() => {
    const { size } = statSync(`${path}-wal`);
    logBytesMax = Math.max(logBytesMax, size);
  }, LOG_LOOK_INTERVAL_MS);
  let isOver = false;
  const backup = runProgram(['backup', join(folder, 'backup.db'), '--database', `sqlite:${path}`]).finally(
    () => {
      isOver = true;
    },
  );
  const during: LoadResult[] = [];
  while (!isOver) during.push(await load());
  const after = [await load(), await load()];
  clearInterval(looking);
  const { stdout, stderr } = await backup;
  console.log(stdout || stderr);
  console.log(`${CONNECTIONS} connections, random ids, ${SECONDS} s each`);
  for (const [when, results] of Object.entries({ before, during, after })) {
    for (const { ratePerSecond, p99Us, maxUs, failures } of results) {
      const latency = `p99 ${(p99Us / 1000).toFixed(1)} ms, longest ${(maxUs / 1000).toFixed(0)} ms`;
      console.log(`${when}: ${Math.round(ratePerSecond)} creates/s, ${latency}, ${failures} failures`);
    }
  }
  console.log(`longest write-ahead log: ${Math.round(logBytesMax / 2 ** 20)} MiB`);
} finally {
  await serve.stop('SIGTERM');
  rmSync(folder, { recursive: true });
}
