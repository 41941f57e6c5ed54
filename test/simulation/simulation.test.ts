import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { SEED } from '../harness/seeded-random.ts';
import { PARTS } from './parts.ts';
import type { Order, Report } from './simulation-thread.ts';

/** Of all parts together. `npm run simulate` runs any number. */
const SEEDS = 1_000;

// In the thread of a test, the runner observes each promise, which doubles the CPU time.
const thread = new Worker(new URL('./simulation-thread.ts', import.meta.url));
after(() => thread.terminate());

for (const { name } of PARTS) {
  const seeds = Math.floor(SEEDS / PARTS.length);
  test(`the simulation of ${name} finds no fault with ${seeds} seeds`, async t => {
    const order: Order = { part: name, first: SEED * SEEDS, seeds };
    thread.postMessage(order);
    const [report] = (await once(thread, 'message')) as [Report];
    if (report.kind === 'fault') assert.fail(report.message);
    t.diagnostic(JSON.stringify(report.happened));
  });
}
