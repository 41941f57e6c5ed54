import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { BODY_MAX_BYTES } from '../../src/core/contract/limits.ts';
import { makeToken } from '../../src/core/tokens/token.ts';
import { TOKEN_REFRESH_INTERVAL_MIN_MS } from '../../src/core/tokens/token-cache.ts';
import { ask, chunked, type RequestParts, requestBytes } from '../harness/raw-connection.ts';
import { addToken } from '../harness/running-service.ts';
import { serverSideOf } from '../harness/server-side.ts';
import { holdStore } from '../harness/store-hold.ts';
import { sqliteUnderTest } from '../harness/store-under-test.ts';
import { until } from '../harness/until.ts';
import {
  assertClosed,
  assertRejected,
  ConnectionTarget,
  GHOST_ID,
  plantJson,
  writeApart,
} from './connection-target.ts';

const sqlite = sqliteUnderTest();
const target = await ConnectionTarget.start();

function nextIds(count: number): number[] {
  return Array.from({ length: count }, () => target.nextId());
}

function requests(ids: readonly number[]): Buffer {
  return Buffer.concat(ids.map(id => target.request(id)));
}

suite('requests in one write', { concurrency: true }, () => {
  for (const count of [1, 1_500]) {
    test(`${count} get responses in order, and so does junk after them, if the client closes its side`, async () => {
      using connection = await target.open();
      const ids = nextIds(count);
      connection.socket.end(
        Buffer.concat([requests(ids), Buffer.from('junk\r\n\r\n'), target.request(GHOST_ID)]),
      );
      await target.assertCreated(connection, ...ids);
      await assertRejected(connection, 40000);
      await assertClosed(connection);
    });
  }
});

suite('requests in chunks that arrive one by one', { concurrency: true }, () => {
  test('of one byte are the same requests', async () => {
    using connection = await target.open();
    const ids = nextIds(2);
    for (const byte of requests(ids)) await writeApart(connection, Buffer.of(byte));
    await target.assertCreated(connection, ...ids);
    await target.assertOpen(connection);
  });

  test('are accepted while earlier ones wait for the disk, also if the client closes its side', async () => {
    using held = holdStore(target.service.database);
    using connection = await target.open();
    const ids = nextIds(3);
    const all = requests(ids);
    await writeApart(connection, all.subarray(0, -100));
    connection.write(all.subarray(-100));
    connection.finish();
    await until('the service has read the end', () => serverSideOf(connection)!.readableEnded);
    held[Symbol.dispose]();
    await target.assertCreated(connection, ...ids);
    await assertClosed(connection);
  });
});

suite('a request that is cut off', { concurrency: true }, () => {
  const half = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length / 2);
  const cutOff: Record<string, (id: number) => Buffer> = {
    'within the headers': id => half(half(target.request(id))),
    'before the last byte': id => target.request(id).subarray(0, -1),
    'within a body of known length': id => target.request(id, { headers: { 'Content-Length': '1000' } }),
    'within a body with Upgrade': id =>
      target.request(id, { headers: { Connection: 'upgrade', Upgrade: 'h2c' } }).subarray(0, -1),
    'within a chunk': id =>
      target.request(id, { ...chunked(plantJson(id)), body: `3e8\r\n${plantJson(id)}` }),
    'before the last chunk': id => target.request(id, chunked(plantJson(id))).subarray(0, -5),
  };
  for (const [where, bytes] of Object.entries(cutOff)) {
    test(`${where} is not stored, and those before it get their responses`, async () => {
      using connection = await target.open();
      const id = target.nextId();
      connection.socket.end(Buffer.concat([target.request(id), bytes(GHOST_ID)]));
      await target.assertCreated(connection, id);
      await connection.ended;
      if (connection.unread !== '') await assertRejected(connection, 40000);
      assert.equal(connection.unread, '');
    });
  }

  test('by a reset does no harm, also while responses wait for the disk', async () => {
    using held = holdStore(target.service.database);
    for (const bytes of [requests(nextIds(1)), requests(nextIds(100)), cutOff['within a chunk']!(GHOST_ID)]) {
      const connection = await target.open();
      connection.write(Buffer.concat([bytes, Buffer.from('POST')]));
      await until('it is read', () => (serverSideOf(connection)?.bytesRead ?? 0) > bytes.length);
      const closed = new Promise(resolve => serverSideOf(connection)!.on('close', resolve));
      connection.socket.resetAndDestroy();
      await closed;
    }
    held[Symbol.dispose]();
    using next = await target.open();
    await target.assertOpen(next);
  });
});

test('other requests between thousands get their responses in order, also if the client closes its side', async () => {
  using connection = await target.open();
  const [ids, more] = [nextIds(1_500), nextIds(100)];
  const other = target.request(GHOST_ID, { method: 'PUT' });
  connection.socket.end(Buffer.concat([requests(ids), other, requests(more), other]));
  await target.assertCreated(connection, ...ids);
  await assertRejected(connection, 40501);
  await target.assertCreated(connection, ...more);
  await assertRejected(connection, 40501);
  await assertClosed(connection);
});

test('bytes that cannot become a request are rejected at once, without an empty line at their end', async () => {
  for (const bytes of ['\r\r\nGET / HT', '\r\r', '\n', 'GET /  HTTP']) {
    using connection = await target.open();
    connection.write(bytes);
    await assertRejected(connection, 40000);
    await assertClosed(connection);
  }
});

test('a response has the current Date', async () => {
  using connection = await target.open();
  const dates = new Set<string | undefined>();
  await until('it changes', async () => {
    connection.write(target.request(target.nextId()));
    dates.add((await connection.response()).headers.get('date'));
    return dates.size > 1;
  });
  const [latest = ''] = [...dates].slice(-1);
  assert.ok(Math.abs(Date.now() - Date.parse(latest)) < 10_000, latest);
});

test('a request may arrive in two chunks, split anywhere', async () => {
  using connection = await target.open();
  for (let cut = 1; cut < target.request(100_000).length; cut += 2) {
    const id = target.nextId() + 100_000;
    const request = target.request(id);
    await writeApart(connection, request.subarray(0, cut));
    assert.equal(connection.unread, '');
    connection.write(request.subarray(cut));
    await target.assertCreated(connection, id);
  }
});

test('no further bodies are read while 256 KiB of them wait for responses', async () => {
  const held = holdStore(target.service.database);
  using connection = await target.open();
  const ids = nextIds(200);
  const unknown = 'x'.repeat(10_000);
  const bodies = ids.map(id =>
    target.request(id, { body: `{"id":${id},"name":"Plant ${id}","x":"${unknown}"}` }),
  );
  connection.write(Buffer.concat(bodies));
  await until('so many are read', () => (serverSideOf(connection)?.bytesRead ?? 0) > 256 * 1024);
  // Meanwhile the service would read the others.
  for (let count = 0; count < 5; count++) await target.assertAlive();
  const read = serverSideOf(connection)!.bytesRead;
  held[Symbol.dispose]();
  assert.ok(read < 600_000, `${read} bytes were read`);
  await target.assertCreated(connection, ...ids);
});

test('a body is not read as a request, after a late rejection and the end of the client', async () => {
  using connection = await target.open();
  const ghost = target.request(GHOST_ID).toString();
  const [unknown, second] = [makeToken(), target.nextId()];
  connection.socket.end(
    Buffer.concat([
      // Its token is looked up, so the service sees the end of the client before it responds.
      requestBytes(unknown, { body: plantJson(GHOST_ID) }),
      target.request(GHOST_ID, chunked(ghost)),
      target.request(second),
    ]),
  );
  await assertRejected(connection, 40102);
  await assertRejected(connection, 40001);
  await target.assertCreated(connection, second);
  await assertClosed(connection);
});

suite('a client that sends more after its last response can read that response', {
  concurrency: true,
}, () => {
  for (const version of ['1.0', '1.1'])
    test(`after Connection: close of HTTP/${version}`, async () => {
      using connection = await target.open();
      const id = target.nextId();
      connection.write(target.request(id, { version, headers: { Connection: 'close' } }));
      await target.assertCreated(connection, id);
      // In flight for longer than the service would read if it closed at once.
      connection.write(Buffer.concat([Buffer.from('junk'), Buffer.alloc(1024 * 1024)]));
      connection.finish();
      await assertClosed(connection);
      await once(connection.socket, 'close');
      assert.equal(connection.socket.errored, null, 'the connection was not reset');
    });

  const length = { 'Content-Length': String(16 * BODY_MAX_BYTES) };
  const rejected: [number, RequestParts][] = [
    [41301, { headers: length, body: '' }],
    [40401, { headers: length, body: '', target: '/nowhere' }],
  ];
  for (const [number, parts] of rejected) {
    test(`in a body that was rejected with ${number}; requests after it are ignored`, async () => {
      using connection = await target.open();
      connection.write(target.request(GHOST_ID, parts));
      // Like most clients, this one reads only after it has sent everything.
      connection.socket.pause();
      connection.write(Buffer.concat([Buffer.alloc(16 * BODY_MAX_BYTES, ' '), target.request(GHOST_ID)]));
      await new Promise(resolve => connection.socket.once('drain', resolve));
      connection.socket.resume();
      await assertRejected(connection, number);
      await assertClosed(connection);
    });
  }
});

test('CONNECT on one connection does not affect the next, also if it is reset', async () => {
  const reset = await target.open();
  reset.write('CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n');
  reset.socket.resetAndDestroy();
  using tunnel = await target.open();
  const closed = once(serverSideOf(tunnel)!, 'close');
  tunnel.write('CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n');
  await assertRejected(tunnel, 40501);
  const next = await Promise.all(Array.from({ length: 10 }, () => target.open()));
  tunnel[Symbol.dispose]();
  await closed;
  const upgrade = { headers: { Connection: 'upgrade', Upgrade: 'h2c' } };
  for (const connection of next) {
    const [first, second] = nextIds(2);
    connection.write(Buffer.concat([target.request(first!, upgrade), target.request(second!)]));
    await target.assertCreated(connection, first!, second!);
    connection[Symbol.dispose]();
  }
});

test('bytes after a request with Upgrade get their response in order, valid or not', async () => {
  for (const rest of ['junk\r\n\r\n', 'GET /', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n']) {
    using connection = await target.open();
    const [first, second] = nextIds(2);
    const upgrade = { headers: { Connection: 'upgrade', Upgrade: 'h2c' } };
    const bytes = [target.request(first!, upgrade), target.request(second!, upgrade), Buffer.from(rest)];
    connection.socket.end(Buffer.concat(bytes));
    await target.assertCreated(connection, first!, second!);
    await assertRejected(connection, 40000);
    await assertClosed(connection);
  }
});

suite('a token', { concurrency: true }, () => {
  test('that does not exist is rejected in order, and its client waits for the lookups', async () => {
    using connection = await target.open();
    const [first, last] = [target.nextId(), target.nextId()];
    const guesses = Array.from({ length: 5 }, () => requestBytes(makeToken(), { body: plantJson(GHOST_ID) }));
    const since = performance.now();
    connection.write(Buffer.concat([target.request(first), ...guesses, target.request(last)]));
    await target.assertCreated(connection, first);
    for (const _ of guesses) await assertRejected(connection, 40102);
    assert.ok(performance.now() - since > TOKEN_REFRESH_INTERVAL_MIN_MS, 'few requests are parsed ahead');
    await target.assertCreated(connection, last);
  });

  for (const [what, parts] of [
    ['a plain body', {}],
    ['a body that is expected', { headers: { Expect: '100-continue' } }],
  ] as const) {
    test(`that is revoked or expires while ${what} arrives is rejected`, async () => {
      const { database, address } = target.service;
      for (const column of ['revoked_at', 'expires_at']) {
        const label = `${column} ${what}`;
        const token = await addToken(database, label);
        const statusOfInvalid = async () => (await ask(address.port, token, { body: '{' })).status;
        assert.equal(await statusOfInvalid(), 400);
        using connection = await target.open();
        const request = requestBytes(token, { ...parts, body: plantJson(GHOST_ID) });
        await writeApart(connection, request.subarray(0, -1));
        if ('headers' in parts) assert.equal((await connection.response()).status, 100);
        await sqlite.sql(database, `UPDATE token SET ${column} = 1 WHERE label = '${label}'`);
        await until('the service knows it', async () => (await statusOfInvalid()) === 401);
        connection.write(request.subarray(-1));
        await assertRejected(connection, 40102);
      }
    });
  }
});
