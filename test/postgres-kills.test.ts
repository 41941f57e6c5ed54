import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Kill, killUnderLoad } from '../torture/postgres-kills.ts';
import { SEED } from './harness/seeded-random.ts';

/** `npm run torture -- --only postgres-kills` is the long version, and measures how soon plants are taken again. */
const KILLS: Kill[] = [
  'kill PostgreSQL',
  'kill an instance',
  'stop PostgreSQL',
  'kill an instance',
  'freeze and kill PostgreSQL',
  'kill an instance',
];

test('PostgreSQL and instances are ended under the load of three: nothing is lost, twice, or stored unasked', async () => {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const { faults, created, revised, unchanged, unknown } = await killUnderLoad(KILLS, SEED);
  assert.deepEqual(faults, []);
  assert.ok(created > 0 && revised > 0 && unchanged > 0, 'the load has something of everything');
  assert.ok(unknown > 0, 'the kills hit requests under way');
});
