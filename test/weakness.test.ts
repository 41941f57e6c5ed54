import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openForWriting } from '../src/store/sqlite/database.ts';
import { WEAKNESSES } from '../torture/ordeal.ts';
import { type Kill, killUnderLoad } from '../torture/postgres-kills.ts';
import { ServedStore } from '../torture/served-store.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { SEED } from './harness/seeded-random.ts';

/**
 * `npm run torture -- --weakened` shows that an ordeal notices a broken promise only as long as the promise is broken:
 * each weakness changes statements of the store, and would change nothing once those read otherwise.
 */
const ROUNDS_MAX = 10;
/** In a round: to start PostgreSQL and its instances takes longer than to kill it. */
const KILLS = new Array<Kill>(4).fill('kill PostgreSQL');

/** A kill may come when what was answered is committed already, above all on a slow machine. */
async function assertFound(round: (seed: number) => Promise<string[]>): Promise<void> {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  for (let count = 0; count < ROUNDS_MAX; count++) {
    const faults = await round(SEED + count);
    if (faults.length > 0) return;
  }
  assert.fail(
    `nothing was found in ${ROUNDS_MAX} rounds; does the weakness still meet the statement it breaks?`,
  );
}

test('answer-before-commit on SQLite loses a plant when the service is killed behind its answer', async () => {
  await using store = await ServedStore.make({ weakness: 'answer-before-commit' });
  await assertFound(async seed => {
    await store.start();
    const client = new LoggingClient(store.url, store.token, store.log);
    const { answer } = await client.send({ id: BigInt(seed), name: 'oak' });
    await store.kill();
    await client.close();
    assert.equal(answer?.status, 200);
    return await store.faults('kill');
  });
});

test('synchronous-off on SQLite flushes nothing, and says that it does', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-weakness-'));
  // In another spelling than that in which the store asks, and is deceived.
  const synchronous = (): unknown => {
    using database = openForWriting(join(folder, 'plants.db'));
    return database.prepare('PRAGMA main.synchronous').get()?.synchronous;
  };
  assert.equal(synchronous(), 2);
  await import('../torture/weakness/sqlite-synchronous-off.ts');
  assert.equal(synchronous(), 0);
  rmSync(folder, { recursive: true });
});

for (const weakness of WEAKNESSES) {
  test(`${weakness} on PostgreSQL shows when it is killed`, async () => {
    await assertFound(async seed => (await killUnderLoad(KILLS, seed, { weakness })).faults);
  });
}
