import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kills } from '../../faults/kills.ts';
import type { Order, Result } from '../../faults/scenario.ts';
import { SEED } from '../harness/seeded-random.ts';

// Short runs of one fault scenario. `npm run faults` runs all for longer and measures the recovery.

async function run(roundsMax: number, mutant?: Order['mutant']): Promise<Result> {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const { signal } = new AbortController();
  const order = { roundsMax, mutant, budgetMs: Infinity, signal, tell: () => {} };
  return await kills.run({ seed: SEED, ...order });
}

test(`${kills.name} finds no fault`, async () => {
  const { faults, measurements } = await run(3);
  assert.deepEqual(faults, []);
  for (const outcome of ['created', 'revised', 'unchanged', 'rejected'])
    assert.ok(Number(measurements[`requests ${outcome}`]) > 0, outcome);
});

// A mutant replaces statements of the store, so it has no effect if their text changes. A kill may
// come after the commit of a confirmed plant, especially on a slow machine. Hence the many rounds.
// RELEASING.md has the commands for the other mutants.
test(`${kills.name} finds respond-before-commit`, async () => {
  const { faults } = await run(30, 'respond-before-commit');
  assert.notDeepEqual(faults, []);
});
