import { test } from 'node:test';
import { SEED } from '../harness/seeded-random.ts';
import type { Happened } from './part.ts';
import { PARTS } from './parts.ts';

/** Of all parts together. `npm run simulate` runs any number. */
const SEEDS = 2_000;

for (const { name, simulate } of PARTS) {
  const seeds = Math.floor(SEEDS / PARTS.length);
  test(`the simulation of ${name} finds no fault with ${seeds} seeds`, async t => {
    const happened: Happened = {};
    const first = SEED * SEEDS;
    for (let seed = first; seed < first + seeds; seed++) {
      try {
        await simulate(seed, happened);
      } catch (error) {
        t.diagnostic(`npm run simulate -- --only ${name} --first ${seed} --seeds 1`);
        throw error;
      }
    }
    t.diagnostic(JSON.stringify(happened));
  });
}
