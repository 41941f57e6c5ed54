import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { IN_FLIGHT_PLANTS_MIN } from '../../src/store/group-commit.ts';
import { RawConnection, type RawResponse, requestBytes } from '../harness/raw-connection.ts';
import { assertErrorResponse } from '../harness/response-assertions.ts';
import { startTestService } from '../harness/running-service.ts';
import { responsesIn, scrape } from '../harness/scrape.ts';
import { holdStore } from '../harness/store-hold.ts';
import { storedRevisions } from '../harness/stored-revisions.ts';
import { until } from '../harness/until.ts';
import { writeApart } from './connection-target.ts';

/** The response of `/readyz?verbose`, with its checks by name. */
async function readVerbosely(opsUrl: string) {
  const response = await fetch(`${opsUrl}/readyz?verbose`);
  const { checks, ...body } = (await response.json()) as { checks: { name: string; ok: boolean }[] };
  return { status: response.status, body, checks: new Map(checks.map(check => [check.name, check])) };
}

/** Two connections send more plants than always may be in flight. */
const PLANTS_OF_EACH = IN_FLIGHT_PLANTS_MIN / 2 + 100;
/** A commit that takes so long is slow, but does not fail. */
const SLOW_MS = 1_000;
const INTERVAL_MS = 50;

test('with a full queue, the response is 503 with Retry-After at once; accepted plants are stored', async () => {
  await using service = await startTestService();
  const { address, token, database, opsUrl } = service;
  using opened = new DisposableStack();
  const responses: RawResponse[] = [];
  let lastId = -1;
  const next = (): Buffer => requestBytes(token, { body: `{"id":${++lastId},"name":"A"}` });
  const send = async (count: number): Promise<() => Promise<void>> => {
    const connection = opened.use(await RawConnection.open(address.port));
    const first = lastId + 1;
    await writeApart(connection, Buffer.concat(Array.from({ length: count }, next)));
    return async () => {
      for (let id = first; id < first + count; id++) responses[id] = await connection.response();
    };
  };
  const sendAll = async () => [await send(PLANTS_OF_EACH), await send(PLANTS_OF_EACH)];

  await until('a plant is rejected while those before it wait', async () => {
    // A slow commit shows a rate at which few plants may wait.
    const slow = holdStore(database);
    const slowly = await sendAll();
    await wait(SLOW_MS);
    slow[Symbol.dispose]();
    for (const read of slowly) await read();

    using held = holdStore(database);
    const reading = await sendAll();
    let isRejected = false;
    for (let count = 0; count < SLOW_MS / INTERVAL_MS && !isRejected; count++) {
      const id = lastId + 1;
      const read = await send(1);
      reading.push(() => pending);
      const pending = read().then(() => {
        isRejected ||= responses[id]!.body.includes('"error":50301');
      });
      await wait(INTERVAL_MS);
    }
    if (isRejected) {
      const { values } = await scrape(opsUrl);
      for (const waiting of ['batches_in_flight', 'in_flight_plants'])
        assert.ok(values.get(`plant_store_${waiting}`)! > 0, waiting);
    }
    held[Symbol.dispose]();
    for (const read of reading) await read();
    return isRejected;
  });
  const stored = new Set((await storedRevisions(database)).map(({ plant }) => Number(plant.id)));
  assert.ok(responses.some(({ status }) => status === 200));
  const counted = responsesIn(await scrape(opsUrl));
  assert.equal(counted.busy, responses.filter(({ body }) => body.includes('"error":50301')).length);
  assert.equal(counted.created, responses.filter(({ status }) => status === 200).length);
  for (const [id, response] of responses.entries()) {
    if (response.status === 200) assert.ok(stored.has(id), `plant ${id} is lost`);
    if (response.body.includes('"error":50301')) {
      assertErrorResponse(response, 50301);
      assert.equal(response.headers.get('retry-after'), '1');
      assert.ok(!stored.has(id), `plant ${id} is stored, though it was rejected as busy`);
    }
  }
});

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
    return response.status === 503;
  });
  const reason = 'the store cannot be used now; the log has the cause';
  assert.deepEqual(response.body, { status: 'not ready', reason });
  assert.deepEqual(response.checks.get('store'), { name: 'store', ok: false, detail: reason });
  assert.equal(response.checks.get('shutdown')?.ok, true);
  assert.ok(service.logged.some(line => line.includes('cannot be used')));
  held[Symbol.dispose]();
  for (let id = 1; id <= sent; id++) await connection.response();
  const back = await ready();
  assert.equal(back.status, 200);
  assert.equal(back.checks.get('store')?.ok, true);
  assert.ok(service.logged.includes('the store can be used again'));

  const closed = service.close();
  const closing = await ready();
  assert.equal(closing.status, 503);
  assert.deepEqual(closing.body, { status: 'not ready', reason: 'shutting down' });
  const check = { name: 'shutdown', ok: false, detail: 'shutting down' };
  assert.deepEqual(closing.checks.get('shutdown'), check);
  assert.equal((await scrape(service.opsUrl)).values.get('plant_store_shutting_down'), 1);
  await closed;
});
