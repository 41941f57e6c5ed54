import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { POSTGRES_OPERATION_WAIT_MS } from '../src/contract/limits.ts';
import type { Connection, TextRow } from '../src/store/postgres/connection.ts';
import { ConnectionPool } from '../src/store/postgres/connection-pool.ts';
import { HostSearch } from '../src/store/postgres/host-search.ts';
import { postgresAddressOf } from '../src/store/postgres/postgres-url.ts';
import { SilentHost } from './silent-host.ts';
import { postgresUnderTest } from './store-under-test.ts';

const under = await postgresUnderTest();

function backendOf(connection: Connection): Promise<TextRow[]> {
  return connection.run({ text: 'SELECT pg_backend_pid()' });
}

test('who gets a connection too late for a statement begins none, which would cost the connection', async () => {
  const pool = new ConnectionPool(new HostSearch(postgresAddressOf(await under.newDatabase())), 1);
  const taken = Promise.withResolvers<TextRow[]>();
  const taking = pool.use(async connection => {
    taken.resolve(await backendOf(connection));
    await wait(POSTGRES_OPERATION_WAIT_MS - 10);
  });
  const backend = await taken.promise;
  // Should this machine be slow to let go of the connection, there is no time at all, and the answer is the same.
  const late = pool.use(connection => connection.run({ text: 'SELECT pg_sleep(0.1)' }));
  await assert.rejects(late, {
    name: 'StoreUnavailable',
    message: /^no connection to the store was free in time/,
  });
  await taking;
  assert.deepEqual(await pool.use(backendOf), backend);
  await pool.close();
});

test('nobody waits for a connection longer than an operation may take, whatever connect_timeout says', async () => {
  using silent = await SilentHost.listen();
  const address = postgresAddressOf(`postgres://u:p@${silent.name}/d?connect_timeout=60&sslmode=disable`);
  const pool = new ConnectionPool(new HostSearch(address), 1);
  const since = performance.now();
  await assert.rejects(pool.use(backendOf), { name: 'StoreUnavailable' });
  const waitedMs = performance.now() - since;
  // A slow machine takes longer than the limit, and not as long as connect_timeout.
  assert.ok(waitedMs < 30_000, `it took ${waitedMs} ms`);
  await pool.close();
});
