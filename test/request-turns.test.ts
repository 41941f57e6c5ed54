import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { TURN_FURTHER_REQUESTS_MAX } from '../src/http/limits.ts';
import { RequestTurns } from '../src/http/request-turns.ts';
import { ConnectionTarget } from './connection-target.ts';

test('a turn takes so many requests, and those who wait go on in order, each behind those who have not', async () => {
  const most = 100;
  const turns = new RequestTurns(most);
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
  takeAll('a', 3 * most);
  takeAll('b', most);
  takeAll('c', 1);
  assert.equal(taken.length, most);
  for (let turn = 0; turn < 6; turn++) await turnOfTheEventLoop();
  const order = taken.filter((who, index) => who !== taken[index - 1]);
  assert.deepEqual(order, ['a', 'b', 'c', 'a']);
  assert.equal(taken.length, 4 * most + 1);
});

test('a request with a long body counts as several of a turn', () => {
  const takenOf = (bodyBytes: number): number => {
    const turns = new RequestTurns(100);
    let taken = 0;
    while (turns.take(bodyBytes)) taken++;
    return taken;
  };
  assert.equal(takenOf(0), 100);
  const taken = takenOf(64 * 1024);
  assert.ok(taken >= 1 && taken < 10, `${taken} of 64 KiB`);
});

test('clients that send thousands of requests at once get each answered, in order', async () => {
  const target = await ConnectionTarget.start();
  try {
    const clients = await Promise.all(Array.from({ length: 3 }, () => target.open()));
    const sent = clients.map(client => {
      const ids = Array.from({ length: 10 * TURN_FURTHER_REQUESTS_MAX }, () => target.nextId());
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

test('a client that waits for each answer is not behind those that send thousands', async () => {
  const target = await ConnectionTarget.start();
  try {
    const lone = await target.open();
    const flooders = await Promise.all(Array.from({ length: 30 }, () => target.open()));
    const each = 10 * TURN_FURTHER_REQUESTS_MAX;
    let answered = 0;
    const reading = flooders.map(async flooder => {
      flooder.write(Buffer.concat(Array.from({ length: each }, () => target.request(target.nextId()))));
      for (let left = each; left > 0; left--, answered++) await flooder.answer();
    });
    await once(flooders[0]!.socket, 'data');
    for (let count = 0; count < 10; count++) {
      lone.write(target.request(target.nextId()));
      await lone.answer();
    }
    const atItsLast = answered;
    await Promise.all(reading);
    // Behind them in order it would have waited for all of them: each has more when it has had its turn.
    assert.ok(atItsLast < answered / 2, `${atItsLast} of ${answered} were answered before it had its ten`);
  } finally {
    await target.end();
  }
});
