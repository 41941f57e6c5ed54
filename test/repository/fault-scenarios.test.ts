import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bitFlips } from '../../faults/bit-flips.ts';
import { kills } from '../../faults/kills.ts';
import { postgresKills } from '../../faults/postgres-kills.ts';
import type { Order, Result, Scenario } from '../../faults/scenario.ts';
import { SEED } from '../harness/seeded-random.ts';

// Short runs of fault scenarios. `npm run faults` runs them for longer and measures the recovery.

async function run(scenario: Scenario, roundsMax: number, mutant?: Order['mutant']): Promise<Result> {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const { signal } = new AbortController();
  const order = { roundsMax, mutant, budgetMs: Infinity, signal, tell: () => {} };
  return await scenario.run({ seed: SEED, ...order });
}

const OUTCOMES = ['created', 'revised', 'unchanged', 'rejected'].map(outcome => `requests ${outcome}`);

for (const [scenario, roundsMax, measured] of [
  [kills, 3, OUTCOMES],
  [postgresKills, 6, OUTCOMES],
  [bitFlips, 6, ['flip in the database file, noticed']],
] as const)
  test(`${scenario.name} finds no fault`, async () => {
    const { faults, measurements } = await run(scenario, roundsMax);
    assert.deepEqual(faults, []);
    for (const name of measured) assert.ok(Number(measurements[name]) > 0, name);
  });

// A mutant replaces statements of the store, so it has no effect if their text changes. A kill may
// come after the commit of a confirmed plant, especially on a slow machine. Hence the many rounds.
// RELEASING.md has the commands for the other mutants.
test(`${kills.name} finds respond-before-commit`, async () => {
  const { faults } = await run(kills, 30, 'respond-before-commit');
  assert.notDeepEqual(faults, []);
});
