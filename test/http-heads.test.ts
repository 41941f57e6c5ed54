import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { HEADER_BYTES_MAX } from '../src/contract/limits.ts';
import {
  assertClosed,
  assertCreated,
  assertRefused,
  ConnectionTarget,
  GHOST_ID,
  plantJson,
} from './connection-target.ts';
import { assertErrorAnswer } from './harness/answer-assertions.ts';
import type { RequestParts } from './harness/raw-connection.ts';

let target: ConnectionTarget;

before(async () => {
  target = await ConnectionTarget.start();
});
after(() => target.end());

suite('the request target', () => {
  for (const form of ['http://other.example/plants', 'HTTPS://other.example:8443/plants?a=b']) {
    test(`${form} is taken, RFC 9112 section 3.2.2`, async () => {
      using connection = await target.open();
      const id = target.nextId();
      connection.write(target.request(id, { target: form }));
      await assertCreated(connection, id);
      await target.assertOpen(connection);
    });
  }

  for (const form of [
    'http://other.example',
    'http://other.example?/plants',
    'http://other.example/Plants',
    'ftp://other.example/plants',
  ]) {
    test(`${form} is another path`, async () => {
      using connection = await target.open();
      connection.write(target.request(GHOST_ID, { target: form }));
      await assertRefused(connection, 40401);
      await target.assertOpen(connection);
    });
  }

  test('in absolute form has the same methods', async () => {
    using connection = await target.open();
    connection.write(target.request(GHOST_ID, { method: 'PUT', target: 'http://other.example/plants' }));
    await assertRefused(connection, 40501);
    await target.assertOpen(connection);
  });

  for (const form of ['/plants#part', '/plants?a=b#part']) {
    test(`${form} is refused, since a fragment is never sent, RFC 9112 section 3.2.1`, async () => {
      using connection = await target.open();
      const id = target.nextId();
      connection.write(target.request(id, { target: form }));
      const { status } = await connection.answer();
      assert.ok(status === 400 || status === 404, String(status));
      assert.ok(!(await target.isStored(id)));
    });
  }

  test('in percent-encoding has the same methods', async () => {
    using connection = await target.open();
    connection.write(target.request(GHOST_ID, { method: 'PUT', target: '/%70lants' }));
    await assertRefused(connection, 40501);
    await target.assertOpen(connection);
  });

  test('CONNECT is answered 405 and no tunnel opens', async () => {
    using connection = await target.open();
    const hidden = target.nextId();
    connection.write(
      Buffer.concat([
        target.request(GHOST_ID, {
          method: 'CONNECT',
          target: 'other.example:443',
          headers: { 'Content-Length': null },
          body: '',
        }),
        target.request(hidden),
      ]),
    );
    const answer = await connection.answer();
    assertErrorAnswer(answer, 40501);
    assert.equal(answer.headers.get('allow'), 'POST');
    await assertClosed(connection);
    assert.ok(!(await target.isStored(hidden)));
  });

  test('CONNECT behind a whole request is answered behind it', async () => {
    using connection = await target.open();
    const id = target.nextId();
    connection.write(
      Buffer.concat([target.request(id), Buffer.from('CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n')]),
    );
    await assertCreated(connection, id);
    await assertRefused(connection, 40501);
    await assertClosed(connection);
  });

  test('CONNECT on a connection that is then reset harms nobody', async () => {
    for (let round = 0; round < 20; round++) {
      const connection = await target.open();
      connection.write('CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n');
      connection.socket.resetAndDestroy();
    }
    using connection = await target.open();
    await target.assertOpen(connection);
  });
});

suite('the field Host, RFC 9112 section 3.2', () => {
  for (const host of [
    ['a', 'b'],
    ['a', 'a'],
    null,
    'a b',
    'user@a',
    'http://a',
    'a/b',
    'a:b',
    '[::1',
    'a,b c',
    'a?b',
  ]) {
    test(`${JSON.stringify(host)} is answered 400, and what follows is not taken`, async () => {
      using connection = await target.open();
      const [id, hidden] = [target.nextId(), target.nextId()];
      connection.write(
        Buffer.concat([target.request(id, { headers: { Host: host } }), target.request(hidden)]),
      );
      await assertRefused(connection, 40000);
      await assertClosed(connection);
      assert.ok(!(await target.isStored(id)));
      assert.ok(!(await target.isStored(hidden)));
    });
  }

  for (const host of ['', 'localhost', '127.0.0.1:8080', '[::1]:8080', 'xn--q9jyb4c.example', 'a_b']) {
    test(`${JSON.stringify(host)} is taken`, async () => {
      using connection = await target.open();
      const id = target.nextId();
      connection.write(target.request(id, { headers: { Host: host } }));
      await assertCreated(connection, id);
      await target.assertOpen(connection);
    });
  }

  test('may be missing in HTTP/1.0', async () => {
    using connection = await target.open();
    const id = target.nextId();
    connection.write(target.request(id, { version: '1.0', headers: { Host: null } }));
    await assertCreated(connection, id);
    await assertClosed(connection);
  });
});

suite('fields that Node hides', () => {
  for (const second of ['the same token', 'another token']) {
    test(`a second Authorization with ${second} is answered 401`, async () => {
      for (const order of [0, 1]) {
        using connection = await target.open();
        const id = target.nextId();
        const fields = [
          `Bearer ${target.service.token}`,
          second === 'the same token' ? `Bearer ${target.service.token}` : 'Bearer a',
        ];
        connection.write(
          target.request(id, { headers: { Authorization: order === 0 ? fields : fields.reverse() } }),
        );
        await assertRefused(connection, 40101);
        await target.assertOpen(connection);
        assert.ok(!(await target.isStored(id)));
      }
    });
  }

  test('a second Authorization behind 2,500 other fields is answered 401', async () => {
    using connection = await target.open();
    const id = target.nextId();
    const padding = Object.fromEntries([['a', Array<string>(2500).fill('')]]);
    connection.write(target.request(id, { headers: { ...padding, authorization: 'Bearer a' } }));
    await assertRefused(connection, 40101);
    assert.ok(!(await target.isStored(id)));
  });
});

// Side by side, since a refused body is read on for two seconds.
suite('Expect: 100-continue, RFC 9110 section 10.1.1', { concurrency: true }, () => {
  const expect = { Expect: '100-continue' };

  test('a good head is answered 100, then the body 200', async () => {
    using connection = await target.open();
    const id = target.nextId();
    const body = plantJson(id);
    connection.write(
      target.request(id, { headers: { ...expect, 'Content-Length': String(body.length) }, body: '' }),
    );
    assert.equal((await connection.answer()).status, 100);
    connection.write(body);
    await assertCreated(connection, id);
    await target.assertOpen(connection);
  });

  const refused: [number, RequestParts['headers']][] = [
    [40101, { Authorization: null }],
    [40102, { Authorization: 'Bearer a' }],
    [41501, { 'Content-Type': 'text/plain' }],
    [41301, { 'Content-Length': '1048577' }],
    [40000, { Host: 'a b' }],
  ];
  for (const [number, headers] of refused) {
    test(`${number} is answered without a 100 before it, and the body is not waited for`, async () => {
      using connection = await target.open();
      connection.write(
        target.request(GHOST_ID, { headers: { ...expect, 'Content-Length': '30', ...headers }, body: '' }),
      );
      const answer = await connection.answer();
      assertErrorAnswer(answer, number);
      assert.equal(answer.headers.get('connection'), 'close');
      await assertClosed(connection);
    });
  }

  for (const expectation of ['100-continue', '100-continue, flowers']) {
    test(`behind a refusal of a whole request with ${expectation} the next one is answered`, async () => {
      using connection = await target.open();
      const id = target.nextId();
      connection.write(
        Buffer.concat([
          target.request(GHOST_ID, { target: '/nowhere', headers: { Expect: expectation } }),
          target.request(id),
        ]),
      );
      await assertRefused(connection, 40401);
      await assertCreated(connection, id);
      await target.assertOpen(connection);
    });
  }

  test('a client of HTTP/1.0 is sent no 100', async () => {
    using connection = await target.open();
    const id = target.nextId();
    connection.write(target.request(id, { version: '1.0', headers: expect }));
    await assertCreated(connection, id);
    await assertClosed(connection);
  });

  test('another expectation is ignored', async () => {
    using connection = await target.open();
    const id = target.nextId();
    connection.write(target.request(id, { headers: { Expect: 'flowers' } }));
    await assertCreated(connection, id);
    await target.assertOpen(connection);
  });
});

suite('what asks for another protocol is processed as HTTP/1.1', () => {
  for (const upgrade of ['h2c', 'websocket']) {
    test(`Upgrade: ${upgrade}`, async () => {
      using connection = await target.open();
      const id = target.nextId();
      const headers = {
        Connection: 'Upgrade, HTTP2-Settings',
        Upgrade: upgrade,
        'HTTP2-Settings': 'AAEAAEAAAAIAAAAB',
      };
      connection.write(target.request(id, { headers }));
      await assertCreated(connection, id);
      await target.assertOpen(connection);
    });
  }
});

suite('a head over 16 KiB is answered 431', () => {
  const padding = 'a'.repeat(HEADER_BYTES_MAX);
  const heads: Record<string, RequestParts> = {
    'one long field': { headers: { 'X-Padding': padding } },
    // Of each line the parser counts the name and the value.
    'many short fields': { headers: { a: Array<string>(HEADER_BYTES_MAX / 8).fill('12345678') } },
    'a long path': { target: `/plants?${padding}` },
    'a long token': { headers: { Authorization: `Bearer ${padding}` } },
  };
  for (const [what, parts] of Object.entries(heads)) {
    test(what, async () => {
      using connection = await target.open();
      const [id, hidden] = [target.nextId(), target.nextId()];
      connection.write(Buffer.concat([target.request(id, parts), target.request(hidden)]));
      await assertRefused(connection, 43101);
      await assertClosed(connection);
      assert.ok(!(await target.isStored(id)));
      assert.ok(!(await target.isStored(hidden)));
    });
  }
});
