import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { hashToken, makeToken } from '../src/auth/token.ts';
import { ORDINARY_PIPELINE_MAX } from '../src/contract/limits.ts';
import { openReader, openTokenStore } from '../src/store/open-store.ts';
import {
  assertClosed,
  assertCreated,
  assertRefused,
  ConnectionTarget,
  GHOST_ID,
} from './connection-target.ts';
import { assertErrorAnswer } from './harness/answer-assertions.ts';
import { RawConnection, requestBytes } from './harness/raw-connection.ts';
import { until } from './harness/until.ts';
import { startTestService } from './running-service.ts';
import { isLeftToNode, serverSideOf } from './server-side.ts';
import { holdStore } from './store-hold.ts';

/** A change of a token takes effect within this. */
const EFFECT_WITHIN_MS = 5_000;

let target: ConnectionTarget;

before(async () => {
  target = await ConnectionTarget.start();
  // The first request with a token waits until the service has looked for it.
  using connection = await target.open();
  await target.assertOpen(connection);
});
after(() => target.end());

function nextIds(count: number): number[] {
  return Array.from({ length: count }, () => target.nextId());
}

function requests(ids: readonly number[]): Buffer {
  return Buffer.concat(ids.map(id => target.request(id)));
}

/** Of all these ids there is one revision each. */
async function assertStoredOnce(ids: readonly number[]): Promise<void> {
  const reader = await openReader(target.service.database);
  const revisions = new Map<number, number>();
  for await (const { plant } of reader.revisions())
    revisions.set(Number(plant.id), (revisions.get(Number(plant.id)) ?? 0) + 1);
  await reader.close();
  assert.deepEqual(
    ids.map(id => revisions.get(id)),
    ids.map(() => 1),
  );
}

/** Writes, and waits until the service has read it. */
async function writeApart(connection: RawConnection, bytes: Uint8Array): Promise<void> {
  connection.socket.setNoDelay(true);
  connection.write(bytes);
  await until(
    'the service reads what was written',
    () => serverSideOf(connection)?.bytesRead === connection.socket.bytesWritten,
  );
}

suite('requests in one write are answered in order, and each plant is stored once', () => {
  for (const count of [1, 2, 100, 2_000]) {
    test(`${count} of them`, async () => {
      using connection = await target.open();
      const ids = nextIds(count);
      connection.write(requests(ids));
      for (const id of ids) await assertCreated(connection, id);
      assert.ok(!isLeftToNode(connection), 'they are ordinary');
      await target.assertOpen(connection);
      await assertStoredOnce(ids);
    });
  }

  test('as many as are taken at a time, and one more', async () => {
    using held = holdStore(target.service.database);
    using connection = await target.open();
    const ids = nextIds(ORDINARY_PIPELINE_MAX + 1);
    connection.write(requests(ids));
    await wait(100);
    held[Symbol.dispose]();
    for (const id of ids) await assertCreated(connection, id);
    assert.ok(!isLeftToNode(connection), 'they are ordinary');
    await assertStoredOnce(ids);
  });

  test('those of one commit are answered in few writes', async context => {
    using connection = await target.open();
    await writeApart(connection, requests(nextIds(1)));
    await connection.answer();
    const write = context.mock.method(serverSideOf(connection)!, 'write');
    const ids = nextIds(100);
    connection.write(requests(ids));
    for (const id of ids) await assertCreated(connection, id);
    const writes = write.mock.callCount();
    assert.ok(writes > 0 && writes <= 10, `${writes} writes`);
  });

  test('good bodies and bad ones, whose answers are ready at different times', async () => {
    using connection = await target.open();
    const ids = nextIds(50);
    const bad = target.request(GHOST_ID, { body: '{}' });
    connection.write(Buffer.concat([bad, ...ids.flatMap(id => [target.request(id), bad])]));
    await assertRefused(connection, 40002);
    for (const id of ids) {
      await assertCreated(connection, id);
      await assertRefused(connection, 40002);
    }
    assert.ok(!isLeftToNode(connection), 'they are ordinary');
  });

  test('a request that is sent again with the next one gets an answer of its own', async () => {
    using connection = await target.open();
    const id = target.nextId();
    connection.write(Buffer.concat([requests([id, id, id])]));
    for (const outcome of ['created', 'unchanged', 'unchanged'])
      assert.equal((await connection.answer()).headers.get('plant-outcome'), outcome);
  });
});

suite('behind whole requests in one write', () => {
  const counts = [1, 3, 1_500];
  for (const count of counts) {
    test(`${count}, junk is answered 400 in its turn`, async () => {
      using connection = await target.open();
      const ids = nextIds(count);
      const hidden = target.nextId();
      connection.write(Buffer.concat([requests(ids), Buffer.from('junk\r\n\r\n'), target.request(hidden)]));
      for (const id of ids) await assertCreated(connection, id);
      await assertRefused(connection, 40000);
      await assertClosed(connection);
      await assertStoredOnce(ids);
      assert.ok(!(await target.isStored(hidden)));
    });

    test(`${count}, what is not ordinary is answered in its turn, and what follows it too`, async () => {
      using connection = await target.open();
      const ids = nextIds(count);
      const more = nextIds(count);
      const other = target.request(GHOST_ID, { method: 'PUT' });
      connection.write(Buffer.concat([requests(ids), other, requests(more), other]));
      for (const id of ids) await assertCreated(connection, id);
      await assertRefused(connection, 40501);
      for (const id of more) await assertCreated(connection, id);
      await assertRefused(connection, 40501);
      await target.assertOpen(connection);
      await assertStoredOnce([...ids, ...more]);
    });

    test(`${count}, a part of one waits for the rest of it, and those before it do not`, async () => {
      using connection = await target.open();
      const ids = nextIds(count);
      const last = target.nextId();
      const request = target.request(last);
      connection.write(Buffer.concat([requests(ids), request.subarray(0, -5)]));
      for (const id of ids) await assertCreated(connection, id);
      assert.ok(!(await target.isStored(last)));
      connection.write(request.subarray(-5));
      await assertCreated(connection, last);
      await target.assertOpen(connection);
      await assertStoredOnce([...ids, last]);
    });
  }

  test('Connection: close is the last one that is taken', async () => {
    using connection = await target.open();
    const ids = nextIds(3);
    const hidden = target.nextId();
    const closing = target.request(ids[2]!, { headers: { Connection: 'close' } });
    connection.write(Buffer.concat([requests(ids.slice(0, 2)), closing, target.request(hidden)]));
    for (const id of ids) await assertCreated(connection, id);
    await assertClosed(connection);
    assert.ok(!(await target.isStored(hidden)));
  });
});

suite('a request in pieces that arrive apart', () => {
  test('is ordinary in two, cut anywhere', async () => {
    using connection = await target.open();
    for (let cut = 1; cut < target.request(100_000).length; cut++) {
      const id = target.nextId() + 100_000;
      const request = target.request(id);
      await writeApart(connection, request.subarray(0, cut));
      assert.equal(connection.unread, '');
      connection.write(request.subarray(cut));
      await assertCreated(connection, id);
    }
    assert.ok(!isLeftToNode(connection), 'they are ordinary');
  });

  test('is taken in three, cut anywhere', async () => {
    const { length } = target.request(200_000);
    for (let cut = 1; cut < length - 1; cut += 3) {
      using connection = await target.open();
      const id = target.nextId() + 200_000;
      const request = target.request(id);
      await writeApart(connection, request.subarray(0, cut));
      await writeApart(connection, request.subarray(cut, cut + 1));
      connection.write(request.subarray(cut + 1));
      await assertCreated(connection, id);
      await target.assertOpen(connection);
    }
  });

  test('is taken when the second piece has the first of the next one in it, again and again', async () => {
    using connection = await target.open();
    const ids = nextIds(50);
    const all = requests(ids);
    const size = 100;
    for (let start = 0; start < all.length; start += size)
      await writeApart(connection, all.subarray(start, start + size));
    for (const id of ids) await assertCreated(connection, id);
    await target.assertOpen(connection);
    await assertStoredOnce(ids);
  });

  test('is taken when the second piece comes while those before it wait for the disk', async () => {
    using held = holdStore(target.service.database);
    using connection = await target.open();
    const ids = nextIds(3);
    const all = requests(ids);
    await writeApart(connection, all.subarray(0, -100));
    await writeApart(connection, all.subarray(-100, -50));
    await writeApart(connection, all.subarray(-50));
    held[Symbol.dispose]();
    for (const id of ids) await assertCreated(connection, id);
    await target.assertOpen(connection);
    await assertStoredOnce(ids);
  });
});

suite('a client that closes its side', () => {
  for (const count of [1, 2, 2_000]) {
    test(`behind ${count} whole requests gets their answers`, async () => {
      using connection = await target.open();
      const ids = nextIds(count);
      connection.socket.end(requests(ids));
      for (const id of ids) await assertCreated(connection, id);
      await assertClosed(connection);
      await assertStoredOnce(ids);
    });
  }

  test('behind whole requests is told the same on either way', async () => {
    for (const isOrdinary of [true, false]) {
      using connection = await target.open();
      if (!isOrdinary) {
        connection.write(target.request(GHOST_ID, { method: 'PUT' }));
        await assertRefused(connection, 40501);
      }
      connection.socket.end(requests(nextIds(2)));
      for (let count = 0; count < 2; count++) {
        const { status, headers } = await connection.answer();
        assert.deepEqual([status, headers.get('connection')], [200, 'keep-alive']);
      }
      await assertClosed(connection);
    }
  });

  for (const part of [0.1, 0.5, 0.99]) {
    test(`behind ${part} of a request leaves it unstored, and gets the answers before it`, async () => {
      using connection = await target.open();
      const [id, ghost] = nextIds(2);
      const request = target.request(ghost!);
      connection.socket.end(
        Buffer.concat([target.request(id!), request.subarray(0, Math.floor(part * request.length))]),
      );
      await assertCreated(connection, id!);
      await connection.ended;
      if (connection.unread !== '') await assertRefused(connection, 40000);
      assert.equal(connection.unread, '');
      assert.ok(!(await target.isStored(ghost!)));
    });
  }

  test('while an answer waits for the disk gets it', async () => {
    using held = holdStore(target.service.database);
    using connection = await target.open();
    const ids = nextIds(2);
    await writeApart(connection, requests(ids));
    connection.finish();
    await wait(50);
    held[Symbol.dispose]();
    for (const id of ids) await assertCreated(connection, id);
    await assertClosed(connection);
  });

  test('by a reset while answers wait for the disk harms nobody', async () => {
    using held = holdStore(target.service.database);
    for (const count of [1, 100]) {
      const connection = await target.open();
      await writeApart(connection, Buffer.concat([requests(nextIds(count)), Buffer.from('POST')]));
      const serverSide = serverSideOf(connection)!;
      connection.socket.resetAndDestroy();
      // Not by once(), which fails with the reset.
      await new Promise(resolve => serverSide.on('close', resolve));
    }
    held[Symbol.dispose]();
    using next = await target.open();
    await target.assertOpen(next);
  });
});

suite('a token that the service does not know', () => {
  test('is looked for, and taken if it was just made', async () => {
    const token = makeToken();
    const store = await openTokenStore(target.service.database);
    await store.createToken({ hash: hashToken(token), label: 'just made', createdAt: 1, expiresAt: null });
    await store.close();
    using connection = await target.open();
    const ids = nextIds(3);
    connection.write(
      Buffer.concat(ids.map(id => requestBytes(token, { body: `{"id":${id},"name":"Plant ${id}"}` }))),
    );
    for (const id of ids) await assertCreated(connection, id);
    assert.ok(!isLeftToNode(connection), 'they are ordinary');
    await assertStoredOnce(ids);
  });

  for (const thenCloses of [false, true])
    test(`is refused in its turn if nobody made it${thenCloses ? ', by a client that then closes its side' : ''}`, async () => {
      using connection = await target.open();
      const [before, behind] = nextIds(2);
      const guess = requestBytes(makeToken(), { body: `{"id":${GHOST_ID},"name":"A"}` });
      connection.write(Buffer.concat([requests([before!]), guess, guess, requests([behind!])]));
      if (thenCloses) connection.finish();
      await assertCreated(connection, before!);
      await assertRefused(connection, 40102);
      await assertRefused(connection, 40102);
      await assertCreated(connection, behind!);
      if (thenCloses) await assertClosed(connection);
      else assert.ok(!isLeftToNode(connection), 'they are ordinary');
    });
});

suite('on a connection that was ordinary before', () => {
  test('a store that does not answer is answered 503 with Retry-After, and a plant that it takes again 200', async () => {
    await using failing = await startTestService();
    using connection = await RawConnection.open(failing.address.port);
    const send = (id: number): void =>
      connection.write(requestBytes(failing.token, { body: `{"id":${id},"name":"Plant ${id}"}` }));
    const other = await RawConnection.open(failing.address.port);
    other.write(requestBytes(failing.token, { body: '{' }));
    await assertRefused(other, 40001);
    other[Symbol.dispose]();
    send(1);
    await assertCreated(connection, 1);
    const held = holdStore(failing.database);
    for (const id of [2, 3]) {
      send(id);
      const answer = await connection.answer();
      assertErrorAnswer(answer, 50302);
      assert.equal(answer.headers.get('retry-after'), '1');
    }
    held[Symbol.dispose]();
    send(4);
    await assertCreated(connection, 4);
    assert.ok(!isLeftToNode(connection), 'they are ordinary');
  });

  /** A connection on which a plant was stored with a token that has this much time left. */
  async function openWith(token: string, expiresAt: number | null): Promise<RawConnection> {
    const store = await openTokenStore(target.service.database);
    await store.createToken({ hash: hashToken(token), label: token.slice(-9), createdAt: 1, expiresAt });
    await store.close();
    using first = await target.open();
    first.write(requestBytes(token, { body: '{' }));
    await assertRefused(first, 40001);
    return await target.open();
  }

  /** Goes on sending plants until one is refused; those before it are stored, and it is not. */
  async function assertRefusedSoon(connection: RawConnection, token: string): Promise<void> {
    const since = performance.now();
    for (;;) {
      const id = target.nextId();
      connection.write(requestBytes(token, { body: `{"id":${id},"name":"Plant ${id}"}` }));
      const answer = await connection.answer();
      assert.equal(await target.isStored(id), answer.status === 200);
      if (answer.status !== 200) {
        assertErrorAnswer(answer, 40102);
        return;
      }
      assert.ok(!isLeftToNode(connection), 'they are ordinary');
      assert.ok(performance.now() - since < EFFECT_WITHIN_MS, 'it is refused in time');
      await wait(50);
    }
  }

  test('a token that is revoked is refused within 5 s, though its head was read before', async () => {
    const token = makeToken();
    using connection = await openWith(token, null);
    connection.write(requestBytes(token, { body: '{' }));
    await assertRefused(connection, 40001);
    const store = await openTokenStore(target.service.database);
    await store.revokeToken(token.slice(-9), Date.now());
    await store.close();
    await assertRefusedSoon(connection, token);
  });

  test('a token that expires is refused', async () => {
    const token = makeToken();
    using connection = await openWith(token, Date.now() + 2_000);
    await assertRefusedSoon(connection, token);
  });

  test('a token that expires between two pieces is refused', async () => {
    const token = makeToken();
    const expiresAt = Date.now() + 2_000;
    using connection = await openWith(token, expiresAt);
    const id = target.nextId();
    const request = requestBytes(token, { body: `{"id":${id},"name":"A"}` });
    // Not longer apart than a request stays ordinary (ORDINARY_REST_WAIT_MS).
    await wait(expiresAt - 200 - Date.now());
    await writeApart(connection, request.subarray(0, -1));
    await wait(expiresAt + 100 - Date.now());
    connection.write(request.subarray(-1));
    await assertRefused(connection, 40102);
    assert.ok(!(await target.isStored(id)));
  });
});
