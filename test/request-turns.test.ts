import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { TURN_REQUESTS_MAX } from '../src/contract/limits.ts';
import { RequestTurns } from '../src/http/request-turns.ts';
import { ConnectionTarget } from './connection-target.ts';

test('a turn takes so many requests, and those who wait go on in order, each behind those who have not', async () => {
  const turns = new RequestTurns();
  const taken: string[] = [];
  /** Takes what it can, and waits for its turn to take the rest. */
  const takeAll = (who: string, count: number): void => {
    for (let left = count; left > 0; left--) {
      if (!turns.take(0)) {
        turns.wait(() => takeAll(who, left));
        return;
      }
      taken.push(who);
    }
  };
  takeAll('a', 3 * TURN_REQUESTS_MAX);
  takeAll('b', TURN_REQUESTS_MAX);
  takeAll('c', 1);
  assert.equal(taken.length, TURN_REQUESTS_MAX);
  for (let turn = 0; turn < 6; turn++) await turnOfTheEventLoop();
  const order = taken.filter((who, index) => who !== taken[index - 1]);
  assert.deepEqual(order, ['a', 'b', 'c', 'a']);
  assert.equal(taken.length, 4 * TURN_REQUESTS_MAX + 1);
});

test('clients that send thousands of requests at once get each answered, in order', async () => {
  const target = await ConnectionTarget.start();
  try {
    const clients = await Promise.all(Array.from({ length: 3 }, () => target.open()));
    const sent = clients.map(client => {
      const ids = Array.from({ length: 3 * TURN_REQUESTS_MAX }, () => target.nextId());
      client.write(Buffer.concat(ids.map(id => target.request(id))));
      return { client, ids };
    });
    for (const { client, ids } of sent) {
      for (const id of ids) assert.equal((await client.answer()).headers.get('plant-id'), String(id));
      await target.assertOpen(client);
    }
  } finally {
    await target.end();
  }
});
