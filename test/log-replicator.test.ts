import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openReader } from '../src/store/open-store.ts';
import { faultsOf, type LoggedRequest } from './client-log.ts';
import type { ReplicatorState } from './log-replicator.ts';
import { startServe } from './program.ts';
import { RandomLoad } from './random-load.ts';
import { SEED } from './seeded-random.ts';
import { until } from './until.ts';

const PROGRAM = fileURLToPath(new URL('./log-replicator.ts', import.meta.url));
/** From this length of the log on it makes a checkpoint: 400 KiB. */
const CHECKPOINT_PAGES = 100;
/** Far more than what is written between two of its looks. */
const LOG_BYTES_MAX = 64 * 1024 * 1024;

const folder = mkdtempSync(join(tmpdir(), 'plant-store-replicator-'));
const started: ChildProcess[] = [];
after(() => {
  // What a failed test has left behind would keep this process alive.
  for (const child of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

for (const mode of ['PASSIVE', 'TRUNCATE']) {
  test(`beside a replicator of the log (${mode}) every plant is kept, and the log stays short`, async () => {
    console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
    const path = join(folder, `${mode}.db`);
    const serve = await startServe(`sqlite:${path}`);
    started.push(serve.child);
    const replicator = spawn(process.execPath, [PROGRAM, path, mode, String(CHECKPOINT_PAGES)]);
    started.push(replicator);
    let state: ReplicatorState = { logBytes: 0, rounds: 0, checkpoints: 0 };
    let logBytesMax = 0;
    let stderr = '';
    createInterface(replicator.stdout).on('line', line => {
      state = JSON.parse(line);
      logBytesMax = Math.max(logBytesMax, state.logBytes);
    });
    replicator.stderr.setEncoding('utf8').on('data', text => (stderr += text));

    const log: LoggedRequest[] = [];
    const load = new RandomLoad(serve.url, serve.token, log, SEED);
    await until('the log was begun anew several times while plants were kept', () => {
      assert.equal(replicator.exitCode, null, stderr);
      assert.ok(logBytesMax < LOG_BYTES_MAX, `the log became ${logBytesMax} bytes long`);
      return state.checkpoints >= 3 && state.rounds >= 3;
    });
    await load.stop();
    replicator.kill('SIGTERM');
    await once(replicator, 'close');
    await serve.stop('SIGTERM');

    // It refuses what it must, and everything else is kept.
    const statuses = new Set(log.map(({ answer }) => answer?.status));
    assert.deepEqual([...statuses].sort(), [200, 400, 401]);
    const reader = await openReader(`sqlite:${path}`);
    assert.deepEqual(faultsOf(log, await Array.fromAsync(reader.revisions())), []);
    await reader.close();
    using database = new DatabaseSync(path);
    assert.equal(database.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok');
  });
}
