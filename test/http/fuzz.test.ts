import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzz } from '../harness/fuzz.ts';
import { SEED } from '../harness/seeded-random.ts';

const REQUESTS = 5_000;
/** Far longer than a slow machine needs: only a hang reaches it. */
const TIMER_MS_MAX = 30_000;

test(`${REQUESTS} mutated requests do no harm, seed ${SEED}`, async context => {
  const { faults, requests, responses, stored, slowestMs } = await fuzz({
    ...{ seed: SEED, requests: REQUESTS, hangTimeoutMs: TIMER_MS_MAX },
  });
  context.diagnostic(
    `${requests} requests, ${stored} stored, slowest ${slowestMs.toFixed(0)} ms, responses ${JSON.stringify(responses)}`,
  );
  assert.deepEqual(faults, []);
  // These check that the mutated requests cover what this test is for.
  for (const status of ['200', '400', '401', '404', '405', '415'])
    assert.ok(status in responses, `${status}: ${JSON.stringify(responses)}`);
});
