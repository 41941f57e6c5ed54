import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { startTestService } from '../harness/running-service.ts';
import { scrape } from '../harness/scrape.ts';
import { holdStore } from '../harness/store-hold.ts';
import { until } from '../harness/until.ts';

/** The response of `/readyz?verbose`, with its checks by name. */
async function readVerbosely(opsUrl: string) {
  const response = await fetch(`${opsUrl}/readyz?verbose`);
  const { checks, ...body } = (await response.json()) as { checks: { name: string; ok: boolean }[] };
  return { status: response.status, body, checks: new Map(checks.map(check => [check.name, check])) };
}

test('/readyz responds 503 while the store does not respond, then 200 again, and 503 during the shutdown', async () => {
  await using service = await startTestService();
  const ready = () => readVerbosely(service.opsUrl);
  let response = await ready();
  assert.equal(response.status, 200);
  using connection = await RawConnection.open(service.address.port);
  const held = holdStore(service.database);
  let sent = 0;
  // Each batch waits until the lock times out, so a check behind two batches times out, too.
  // If both plants arrive in one tick, they share a batch, and another try is needed.
  await until('the service is not ready', async () => {
    for (let batch = 0; batch < 2; batch++) {
      connection.write(requestBytes(service.token, { body: `{"id":${++sent},"name":"A"}` }));
      await wait(100);
    }
    response = await ready();
    return response.checks.get('store')?.ok === false;
  });
  connection.write(requestBytes(service.token, { body: `{"id":${++sent},"name":"A"}` }));
  await until('the metrics count the plant that waits', async () => {
    const { values } = await scrape(service.opsUrl);
    return ['batches_in_flight', 'in_flight_plants'].every(each => values.get(`plant_store_${each}`)! > 0);
  });
  // The check waits, until a commit fails with the cause.
  const [cause] =
    /no response within 2 s|database is locked \(SQLite result code 5\)/.exec(
      JSON.stringify(response.body),
    ) ?? [];
  const sentence = `the store cannot be used, and plants get 503 responses: ${cause}`;
  const advice =
    'check the disk and the files of the store, and whether another program locks them; the log of the service has the details';
  const verdict = { state: 'not ready', sentence, advice };
  const reason = `${sentence}; ${advice}`;
  assert.deepEqual(response.body, { status: 'not ready', reason, verdict, restartedAt: null });
  assert.deepEqual(response.checks.get('store'), { name: 'store', ok: false, detail: sentence, advice });
  assert.equal(response.checks.get('shutdown')?.ok, true);
  assert.ok(service.logged.some(line => line.includes('cannot be used')));
  held[Symbol.dispose]();
  for (let id = 1; id <= sent; id++) await connection.response();
  await until('the service is ready', async () => {
    response = await ready();
    return response.status === 200;
  });
  assert.equal(response.checks.get('store')?.ok, true);
  assert.ok(service.logged.includes('the store can be used again'));

  const closed = service.close();
  const closing = await ready();
  assert.equal(closing.status, 503);
  assert.match(JSON.stringify(closing.body), /"reason":"the service is shutting down; /);
  assert.equal(closing.checks.get('shutdown')?.ok, false);
  assert.equal((await scrape(service.opsUrl)).values.get('plant_store_shutting_down'), 1);
  await closed;
});
