import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StoreUnavailable } from '../src/store/plant-store.ts';
import { SqliteEngine } from '../src/store/sqlite/sqlite-engine.ts';
import { startTestService } from './running-service.ts';
import { scrape } from './scrape.ts';

test('what a store warns of is in the log from the start, again when it changes, and in /readyz', async context => {
  // A SQLite store has nothing to warn of, so this one is told to.
  let check = async (): Promise<readonly string[]> => ['fsync is off'];
  context.mock.method(SqliteEngine.prototype, 'check', () => check());
  await using service = await startTestService();
  /** The answer of /readyz, and what was logged since the last one. */
  const look = async (): Promise<[number, unknown, string[]]> => {
    const response = await fetch(`${service.opsUrl}/readyz`);
    return [response.status, await response.json(), service.logged.splice(0)];
  };

  assert.deepEqual(service.logged.splice(0), ['the store warns: fsync is off']);
  assert.deepEqual(await look(), [200, { status: 'ready', warnings: ['fsync is off'] }, []]);

  check = async () => ['fsync is off', 'full_page_writes is off'];
  const verbose = await fetch(`${service.opsUrl}/readyz?verbose`);
  assert.equal(verbose.status, 200, 'a warning does not make it unready');
  const { checks } = (await verbose.json()) as { checks: { name: string; ok: boolean; detail: string }[] };
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [{ name: 'warnings', ok: false, detail: 'fsync is off; full_page_writes is off' }],
  );
  assert.equal((await scrape(service.opsUrl)).values.get('plant_store_store_warnings'), 2);
  assert.deepEqual(await look(), [
    200,
    { status: 'ready', warnings: ['fsync is off', 'full_page_writes is off'] },
    ['the store warns: fsync is off', 'the store warns: full_page_writes is off'],
  ]);
  check = async () => ['full_page_writes is off', 'fsync is off'];
  assert.deepEqual((await look())[2], [], 'the same in another order is no change');

  check = () => Promise.reject(new StoreUnavailable('gone'));
  const [status, body] = await look();
  assert.equal(status, 503);
  assert.deepEqual(body, {
    status: 'not ready',
    reason: 'the store cannot be used now; the log has the cause',
  });
  check = async () => ['fsync is off', 'full_page_writes is off'];
  assert.deepEqual((await look())[2], ['the store can be used again'], 'its warnings are no change');

  check = async () => [];
  assert.deepEqual(await look(), [200, { status: 'ready' }, ['the store has nothing to warn of any more']]);
  assert.deepEqual(await look(), [200, { status: 'ready' }, []]);
});
