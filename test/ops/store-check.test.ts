import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type HeldStatement, PostgresProxy } from '../harness/postgres-proxy.ts';
import { sendPlant } from '../harness/program.ts';
import { RawConnection } from '../harness/raw-connection.ts';
import { startTestService } from '../harness/running-service.ts';
import { postgresUnderTest } from '../harness/store-under-test.ts';

const { server } = await postgresUnderTest();

/** A statement that each check of the store runs once. */
const CHECK = /full_page_writes/;

test('many /readyz and /metrics share one check of PostgreSQL, and plants do not wait for it', async () => {
  await using proxy = await PostgresProxy.start(server.port);
  const database = proxy.url(await server.createDatabase());
  await using service = await startTestService({ database, connections: 1 });
  const checks = () => proxy.statements.filter(text => CHECK.test(text)).length;
  const readyz = () => fetch(`${service.opsUrl}/readyz`);
  // The start has checked a moment ago, so the first requests may share that check.
  let held: HeldStatement | undefined;
  const holding = proxy.holdNext(CHECK).then(statement => (held = statement));
  while (held === undefined) await Promise.race([readyz(), holding]);
  const before = checks();

  using connection = await RawConnection.open(service.opsAddress.port);
  const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  connection.write(Buffer.from((request('/readyz') + request('/metrics')).repeat(20)));
  // The service reads this request after those.
  assert.equal((await fetch(`${service.opsUrl}/livez`)).status, 200);
  assert.equal(await sendPlant(service.url, service.token, 1n), 200);
  await held.deliver();
  held.respond();
  const states = new Set<string>();
  for (let count = 0; count < 40; count++) {
    const { body } = await connection.response();
    states.add(/^plant_store_store_up \d$/m.exec(body)?.[0] ?? body);
  }
  // One state of `/readyz`, and one of `/metrics`.
  assert.deepEqual([states.size, checks() - before], [2, 0]);
});
