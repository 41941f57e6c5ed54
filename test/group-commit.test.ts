import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulatedCounts, simulateGroupCommit } from './harness/group-commit-simulation.ts';
import { SEED } from './harness/seeded-random.ts';

const RUNS = 1_000;

test(`group commit keeps every promise whatever ${RUNS} seeds bring about`, async t => {
  t.diagnostic(`seed ${SEED}; PLANT_STORE_TEST_SEED gives it again`);
  const counts = new SimulatedCounts();
  for (let run = 0; run < RUNS; run++) await simulateGroupCommit(SEED * RUNS + run, counts);
  const never = Object.entries(counts).filter(([, count]) => count === 0);
  assert.deepEqual(never, [], 'what never happened was not checked');
});
