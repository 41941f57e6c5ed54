import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { floods } from '../../faults/floods.ts';
import type { Order } from '../../faults/scenario.ts';
import { slowClients } from '../../faults/slow-clients.ts';
import { REQUEST_KINDS } from '../harness/load.ts';
import { SEED } from '../harness/seeded-random.ts';

// Short runs of fault scenarios. `npm run faults` also measures the times of responses.

const { signal } = new AbortController();
const ORDER: Order = { seed: SEED, budgetMs: 0, signal, tell: console.log, mutant: undefined };

// Concurrent, since slow clients are cut after up to 15 s.
suite('hostile clients', { concurrency: true }, () => {
  test('floods get correct responses, use little memory, and delay no shutdown', async () => {
    const { faults } = await floods.run({ ...ORDER, budgetMs: REQUEST_KINDS.length * 1_000, roundsMax: 3 });
    assert.deepEqual(faults, []);
  });

  test('slow clients get a 408 response or are cut, and none of their plants is stored', async () => {
    const { faults } = await slowClients.run({ ...ORDER, roundsMax: 1 });
    assert.deepEqual(faults, []);
  });
});
