import assert from 'node:assert/strict';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { bitFlips } from '../../faults/bit-flips.ts';
import { kills } from '../../faults/kills.ts';
import { postgresFailover } from '../../faults/postgres-failover.ts';
import { postgresKills } from '../../faults/postgres-kills.ts';
import type { Order, Result, Scenario } from '../../faults/scenario.ts';
import { openForWriting } from '../../src/store/sqlite/database.ts';
import { SEED } from '../harness/seeded-random.ts';

// Short runs of fault scenarios. `npm run faults` runs them for longer and measures the recovery.

async function run(scenario: Scenario, order: Pick<Order, 'roundsMax' | 'mutant'>): Promise<Result> {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const { signal } = new AbortController();
  return await scenario.run({ seed: SEED, budgetMs: Infinity, signal, tell: () => {}, ...order });
}

for (const [scenario, roundsMax] of [
  [kills, 3],
  [postgresKills, 6],
  [postgresFailover, 1],
] as const) {
  test(`${scenario.name}: no plant is lost, stored twice, or stored without a request`, async () => {
    const result = await run(scenario, { roundsMax, mutant: undefined });
    assert.deepEqual(result.faults, []);
    for (const outcome of ['created', 'revised', 'unchanged', 'rejected'])
      assert.ok(Number(result.measurements[`requests ${outcome}`]) > 0, `the load has ${outcome} requests`);
  });
}

// A mutant replaces statements of the store, so it has no effect if their text changes. A kill may
// come after the commit of a confirmed plant, especially on a slow machine. Hence the many rounds.
for (const [scenario, mutant, roundsMax] of [
  [kills, 'respond-before-commit', 30],
  [postgresKills, 'respond-before-commit', 36],
  [postgresKills, 'synchronous-off', 36],
] as const) {
  test(`${scenario.name} finds ${mutant}`, async () => {
    const { faults } = await run(scenario, { roundsMax, mutant });
    assert.notDeepEqual(faults, []);
  });
}

test('bit-flips: no wrong plant is shown, and no damage is unnoticed', async () => {
  const { faults, measurements } = await run(bitFlips, { roundsMax: 6, mutant: undefined });
  assert.deepEqual(faults, []);
  assert.ok(Number(measurements['flip in the database file, noticed']) > 0, 'some damage matters');
});

test('bit-flips finds no-checksums', async () => {
  const { faults } = await run(bitFlips, { roundsMax: 40, mutant: 'no-checksums' });
  assert.notDeepEqual(faults, []);
});

test('synchronous-off on SQLite disables flushes, and hides that from the store', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'plant-store-mutant-'));
  // The mutant falsifies the spelling that the store uses, not this one.
  const synchronous = (): unknown => {
    using database = openForWriting(join(folder.path, 'plants.db'));
    return database.prepare('PRAGMA main.synchronous').get()?.synchronous;
  };
  assert.equal(synchronous(), 2);
  await import('../../faults/mutants/sqlite-synchronous-off.ts');
  assert.equal(synchronous(), 0);
});
