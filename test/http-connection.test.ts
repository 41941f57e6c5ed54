import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';
import { BODY_BYTES_MAX } from '../src/contract/limits.ts';
import {
  assertClosed,
  assertCreated,
  assertRefused,
  ConnectionTarget,
  GHOST_ID,
  plantJson,
} from './connection-target.ts';
import { assertPlantAnswer } from './harness/answer-assertions.ts';
import { chunked, type RequestParts } from './harness/raw-connection.ts';
import { NOT_HTTP } from './malformed-requests.ts';
import { serverSideOf } from './server-side.ts';
import { holdStore } from './store-hold.ts';

let target: ConnectionTarget;

before(async () => {
  target = await ConnectionTarget.start();
});
after(() => target.end());

suite('junk behind a whole request', () => {
  // Node tells of the junk before the plant is durable: an answer given then would be read as the plant's.
  test('is answered after the request, whose plant is stored', async () => {
    using connection = await target.open();
    const id = target.nextId();
    connection.write(Buffer.concat([target.request(id), Buffer.from('junk\r\n\r\n')]));
    await assertCreated(connection, id);
    await assertRefused(connection, 40000);
    await assertClosed(connection);
    assert.ok(await target.isStored(id));
  });

  test('is answered after the request also when the client has closed its side meanwhile', async () => {
    using connection = await target.open();
    const id = target.nextId();
    const held = holdStore(target.service.database);
    connection.write(Buffer.concat([target.request(id), Buffer.from('junk\r\n\r\n')]));
    const closed = once(serverSideOf(connection)!, 'end');
    connection.finish();
    await closed;
    held[Symbol.dispose]();
    await assertCreated(connection, id);
    await assertRefused(connection, 40000);
    await assertClosed(connection);
  });

  test('is answered after two pipelined requests', async () => {
    using connection = await target.open();
    const [first, second] = [target.nextId(), target.nextId()];
    connection.write(
      Buffer.concat([target.request(first), target.request(second), Buffer.from('junk\r\n\r\n')]),
    );
    await assertCreated(connection, first);
    await assertCreated(connection, second);
    await assertRefused(connection, 40000);
    await assertClosed(connection);
  });

  test('is answered after a request that is refused', async () => {
    using connection = await target.open();
    connection.write(Buffer.concat([target.request(GHOST_ID, { body: '{' }), Buffer.from('junk\r\n\r\n')]));
    await assertRefused(connection, 40001);
    await assertRefused(connection, 40000);
    await assertClosed(connection);
  });

  test('hides what follows it', async () => {
    using connection = await target.open();
    const [first, hidden] = [target.nextId(), target.nextId()];
    connection.write(
      Buffer.concat([target.request(first), Buffer.from('junk\r\n\r\n'), target.request(hidden)]),
    );
    await assertCreated(connection, first);
    await assertRefused(connection, 40000);
    await assertClosed(connection);
    assert.ok(!(await target.isStored(hidden)));
  });
});

suite('requests on one connection', () => {
  for (const version of ['1.0', '1.1'])
    test(`that follow the last one of HTTP/${version} are dropped, and its answer is not lost`, async () => {
      using connection = await target.open();
      const id = target.nextId();
      connection.write(target.request(id, { version, headers: { Connection: 'close' } }));
      await assertCreated(connection, id);
      // On its way for longer than a service would see that closes at once.
      connection.write(Buffer.concat([Buffer.from('junk'), Buffer.alloc(1024 * 1024)]));
      connection.finish();
      await assertClosed(connection);
      await once(connection.socket, 'close');
      assert.equal(connection.socket.errored, null, 'the connection was not reset');
    });

  test('are answered in the order in which they came, good and bad', async () => {
    using connection = await target.open();
    const ids = [target.nextId(), target.nextId(), target.nextId()];
    connection.write(
      Buffer.concat([
        target.request(ids[0]!),
        target.request(GHOST_ID, { body: '[]' }),
        target.request(ids[1]!),
        target.request(GHOST_ID, { headers: { Authorization: null } }),
        target.request(GHOST_ID, { target: '/nowhere' }),
        target.request(GHOST_ID, { method: 'GET' }),
        target.request(ids[2]!),
      ]),
    );
    await assertCreated(connection, ids[0]!);
    await assertRefused(connection, 40002);
    await assertCreated(connection, ids[1]!);
    await assertRefused(connection, 40101);
    await assertRefused(connection, 40401);
    await assertRefused(connection, 40501);
    await assertCreated(connection, ids[2]!);
    await target.assertOpen(connection);
  });

  const refused: [number, RequestParts][] = [
    [40001, { body: '{' }],
    [40002, { body: '{}' }],
    [40101, { headers: { Authorization: null } }],
    [40102, { headers: { Authorization: 'Bearer a' } }],
    [40401, { target: '/nowhere' }],
    [40501, { method: 'PUT' }],
    [41501, { headers: { 'Content-Type': 'text/plain' } }],
  ];
  for (const [number, parts] of refused) {
    test(`the connection can be used further behind ${number}`, async () => {
      using connection = await target.open();
      connection.write(target.request(GHOST_ID, parts));
      await assertRefused(connection, number);
      await target.assertOpen(connection);
    });
  }

  test('one byte at a time is the same request', async () => {
    using connection = await target.open();
    connection.socket.setNoDelay(true);
    const id = target.nextId();
    for (const byte of target.request(id)) {
      connection.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    await assertCreated(connection, id);
    await target.assertOpen(connection);
  });

  test('an empty line before a request is ignored, RFC 9112 section 2.2', async () => {
    using connection = await target.open();
    const id = target.nextId();
    connection.write(Buffer.concat([Buffer.from('\r\n'), target.request(id)]));
    await assertCreated(connection, id);
    await target.assertOpen(connection);
  });

  test('Connection: close ends it behind the answer', async () => {
    using connection = await target.open();
    const [id, hidden] = [target.nextId(), target.nextId()];
    connection.write(
      Buffer.concat([target.request(id, { headers: { Connection: 'close' } }), target.request(hidden)]),
    );
    await assertCreated(connection, id);
    await assertClosed(connection);
    assert.ok(!(await target.isStored(hidden)));
  });

  test('200 connections with 5 requests each get their own answers', async () => {
    const clients = Array.from({ length: 200 }, async () => {
      using client = await target.open();
      const ids = Array.from({ length: 5 }, () => target.nextId());
      client.write(Buffer.concat(ids.map(id => target.request(id))));
      for (const id of ids) assertPlantAnswer(await client.answer(), { name: `Plant ${id}` });
      assert.equal(client.unread, '');
    });
    await Promise.all(clients);
  });
});

suite('a client that closes its side', () => {
  test('behind its request gets the answer', async () => {
    using connection = await target.open();
    const id = target.nextId();
    connection.socket.end(target.request(id));
    await assertCreated(connection, id);
    await assertClosed(connection);
  });

  test('behind three requests gets three answers', async () => {
    using connection = await target.open();
    const ids = [target.nextId(), target.nextId(), target.nextId()];
    connection.socket.end(Buffer.concat(ids.map(id => target.request(id))));
    for (const id of ids) await assertCreated(connection, id);
    await assertClosed(connection);
  });

  test('before it sends anything gets no answer', async () => {
    using connection = await target.open();
    connection.finish();
    await assertClosed(connection);
  });

  const whole = 'POST /plants HTTP/1.1\r\nHost: a\r\n';
  test('within the head gets 400 or nothing', async () => {
    using connection = await target.open();
    connection.socket.end(whole);
    if ((await connection.ended) === 'closed' && connection.unread !== '')
      await assertRefused(connection, 40000);
  });

  const brokenOff: [where: string, parts: (body: string) => RequestParts][] = [
    ['within a body of known length', body => ({ body, headers: { 'Content-Length': '1000' } })],
    ['within a chunk', body => ({ ...chunked(body), body: `3e8\r\n${body}` })],
    [
      'before the last chunk',
      body => ({ ...chunked(body), body: `${body.length.toString(16)}\r\n${body}\r\n` }),
    ],
  ];
  for (const [where, parts] of brokenOff) {
    test(`${where} leaves nothing stored`, async () => {
      using connection = await target.open();
      const id = target.nextId();
      connection.socket.end(target.request(id, parts(plantJson(id))));
      await connection.ended;
      if (connection.unread !== '') await assertRefused(connection, 40000);
      assert.equal(connection.unread, '');
      assert.ok(!(await target.isStored(id)));
    });
  }

  test('and tears the connection down within a body leaves nothing stored, and the service whole', async () => {
    using connection = await target.open();
    const id = target.nextId();
    connection.write(target.request(id, { headers: { 'Content-Length': '1000' } }));
    connection.socket.resetAndDestroy();
    using next = await target.open();
    await target.assertOpen(next);
    assert.ok(!(await target.isStored(id)));
  });
});

suite('a client that goes on sending a body that was refused', () => {
  const refused: [number, RequestParts['headers']][] = [
    [41301, {}],
    [40101, { Authorization: null }],
    [40401, {}],
  ];
  for (const [number, headers] of refused) {
    test(`can read the answer ${number}`, async () => {
      using connection = await target.open();
      const length = 16 * 1024 * 1024;
      connection.write(
        target.request(GHOST_ID, {
          target: number === 40401 ? '/nowhere' : '/plants',
          headers: { 'Content-Length': String(length), ...headers },
          body: '',
        }),
      );
      // As most clients do, this one reads only when it has sent everything.
      connection.socket.pause();
      connection.write(Buffer.alloc(length));
      await new Promise(resolve => connection.socket.once('drain', resolve));
      connection.socket.resume();
      await assertRefused(connection, number);
      await assertClosed(connection);
    });
  }
});

// Side by side, since behind a broken body the service reads on for two seconds.
suite('what is not HTTP is answered 400 behind the requests before it, and stores nothing', {
  concurrency: true,
}, () => {
  for (const { what, bytes, status = 400 } of NOT_HTTP) {
    for (const thenCloses of [false, true]) {
      test(`${what}${thenCloses ? ', by a client that then closes its side' : ''}`, async () => {
        using connection = await target.open();
        const [id, ghost, hidden] = [target.nextId(), target.nextId(), target.nextId()];
        connection.write(
          Buffer.concat([
            target.request(id),
            bytes(target.service.token, plantJson(ghost)),
            target.request(hidden),
          ]),
        );
        if (thenCloses) connection.finish();
        await assertCreated(connection, id);
        await assertRefused(connection, status * 100 + (status === 431 ? 1 : 0));
        await assertClosed(connection);
        assert.ok(!(await target.isStored(ghost)));
        assert.ok(!(await target.isStored(hidden)));
      });
    }
  }
});

test('a request behind an answer that closes the connection is not carried out', async () => {
  using connection = await target.open();
  const hidden = target.nextId();
  connection.write(
    target.request(GHOST_ID, { headers: { 'Content-Length': String(BODY_BYTES_MAX + 1) }, body: '' }),
  );
  await assertRefused(connection, 41301);
  connection.write(Buffer.concat([Buffer.alloc(BODY_BYTES_MAX + 1, ' '), target.request(hidden)]));
  await connection.ended;
  assert.equal(connection.unread, '');
  assert.ok(!(await target.isStored(hidden)));
});

suite('what RFC 9112 allows in chunked bodies is taken, section 7.1', () => {
  const size = (body: string): string => body.length.toString(16);
  const forms: Record<string, (body: string) => RequestParts> = {
    'Chunked in another case': body => ({
      headers: { 'Transfer-Encoding': 'Chunked' },
      body: oneChunk(body),
    }),
    'spaces around chunked': body => ({
      headers: { 'Transfer-Encoding': '  chunked ' },
      body: oneChunk(body),
    }),
    'a size in capitals with zeros before it': body => ({
      body: `000${size(body).toUpperCase()}\r\n${body}\r\n000\r\n\r\n`,
    }),
    'a chunk extension': body => ({ body: `${size(body)};a=b;c="d;e"\r\n${body}\r\n0;f\r\n\r\n` }),
    'a trailer, which says nothing': body => ({
      body: `${size(body)}\r\n${body}\r\n0\r\nHost: b\r\nAuthorization: Bearer a\r\n\r\n`,
    }),
  };
  const oneChunk = (body: string): string => `${size(body)}\r\n${body}\r\n0\r\n\r\n`;
  for (const [what, parts] of Object.entries(forms)) {
    test(what, async () => {
      using connection = await target.open();
      const id = target.nextId();
      const { headers, body } = parts(plantJson(id));
      connection.write(
        target.request(id, {
          headers: { 'Content-Length': null, 'Transfer-Encoding': 'chunked', ...headers },
          body: body!,
        }),
      );
      await assertCreated(connection, id);
      await target.assertOpen(connection);
    });
  }
});

test('a body that comes a byte in each chunk is read whole', async () => {
  using connection = await target.open();
  const id = target.nextId();
  const chunks = Array.from(plantJson(id), byte => `1\r\n${byte}\r\n`).join('');
  connection.write(
    target.request(id, {
      headers: { 'Content-Length': null, 'Transfer-Encoding': 'chunked' },
      body: `${chunks}0\r\n\r\n`,
    }),
  );
  await assertCreated(connection, id);
});

test('a long Content-Type costs no more than a short one', async () => {
  using connection = await target.open();
  connection.write(
    target.request(GHOST_ID, { headers: { 'Content-Type': `application/json${' '.repeat(15_000)}x` } }),
  );
  await assertRefused(connection, 41501);
});
