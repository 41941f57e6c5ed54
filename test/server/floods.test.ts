import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BODY_MAX_BYTES } from '../../src/core/contract/limits.ts';
import { makeToken } from '../../src/core/tokens/token.ts';
import { LONG_BODIES_MAX_BYTES } from '../../src/server/long-bodies.ts';
import { chunked, type RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { addToken } from '../harness/running-service.ts';
import { serverSideOf } from '../harness/server-side.ts';
import { until } from '../harness/until.ts';
import { assertRejected, ConnectionTarget, GHOST_ID, plantJson, writeApart } from './connection-target.ts';

/** Their bodies together are far larger than all else in memory. */
const IDLE_BODIES = 16;

const target = await ConnectionTarget.start();

test('idle connections do not keep their last bodies in memory', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const buffered = (): number => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers;
  };
  using opened = new DisposableStack();
  const earlier = buffered();
  for (let count = 0; count < IDLE_BODIES; count++) {
    const { socket } = opened.use(await target.open());
    // Not by `response`, since the client must not keep the response.
    socket.removeAllListeners('data').write(target.request(GHOST_ID, { body: '['.padEnd(BODY_MAX_BYTES) }));
    await once(socket, 'data');
  }
  // Other tests leave and free far less than the bodies together.
  await until('their memory is free', () => buffered() < earlier + (IDLE_BODIES / 2) * BODY_MAX_BYTES);
});

test('a client that waits for each response does not wait for clients that send thousands', async () => {
  const each = 1_280;
  const flooders = 30;
  /** @returns how many responses the flooders have before ten of the lone client */
  async function round(): Promise<number> {
    const lone = await target.open();
    const flooding = await Promise.all(Array.from({ length: flooders }, () => target.open()));
    let responded = 0;
    const reading = flooding.map(async flooder => {
      flooder.write(Buffer.concat(Array.from({ length: each }, () => target.request(target.nextId()))));
      for (let left = each; left > 0; left--, responded++) await flooder.response();
    });
    await once(flooding[0]!.socket, 'data');
    for (let count = 0; count < 10; count++) {
      lone.write(target.request(target.nextId()));
      await lone.response();
    }
    const atItsLast = responded;
    await Promise.all(reading);
    return atItsLast;
  }
  // In order of arrival it would wait for nearly all of them. Other programs may slow this client
  // down, but hardly in each of several rounds.
  await until('its ten come before half of theirs', async () => (await round()) < (flooders * each) / 2);
});

/** Bytes without a valid token that cost much if each is read again and again, or in quadratic time. */
const COSTLY: Record<string, string> = {
  'a field full of blanks': `GET / HTTP/1.1\r\nHost: a\r\nConnection: a${' '.repeat(16_000)}b\r\n\r\n`,
  'a header section of many fields': `GET / HTTP/1.1\r\nHost: a\r\n${'a: b\r\n'.repeat(2_700)}\r\n`,
  'a header section that never ends': `GET / HTTP/1.1\r\nHost: a\r\n${'a: b\r\n'.repeat(2_200)}`,
  'empty lines': '\r\n'.repeat(32_000),
};

for (const [what, bytes] of Object.entries(COSTLY))
  test(`one hundred clients that send ${what} cost little CPU time`, async () => {
    using opened = new DisposableStack();
    const cpuSince = process.cpuUsage();
    const clients = await Promise.all(Array.from({ length: 100 }, () => target.open()));
    for (const { socket } of clients) {
      opened.defer(() => socket.destroy());
      socket.write(bytes);
    }
    // The service reads this after those.
    await target.assertAlive();
    const { user } = process.cpuUsage(cpuSince);
    // The pattern that was quadratic took twenty times as long.
    assert.ok(user < 3_000_000, `${user} µs`);
  });

suite('long bodies that are incomplete', () => {
  const MOST = LONG_BODIES_MAX_BYTES / BODY_MAX_BYTES;
  const longHeaders = (): Buffer =>
    target.request(GHOST_ID, {
      headers: { Expect: '100-continue', 'Content-Length': String(BODY_MAX_BYTES) },
      body: '',
    });

  /** Begins a long body. @returns undefined if the service has no memory for it */
  async function begin(): Promise<RawConnection | undefined> {
    const connection = await target.open();
    connection.write(longHeaders());
    const response = await connection.response();
    if (response.status === 100) return connection;
    assert.equal(response.headers.get('retry-after'), '1');
    assert.equal(JSON.parse(response.body).error, 50301);
    assert.equal(response.headers.get('connection'), 'close');
    connection[Symbol.dispose]();
    return undefined;
  }

  /** Begins long bodies as long as the service accepts them. */
  async function beginAll(): Promise<RawConnection[]> {
    const begun: RawConnection[] = [];
    for (let next = await begin(); next !== undefined; next = await begin()) {
      begun.push(next);
      assert.ok(begun.length <= MOST, 'the number is limited');
    }
    return begun;
  }

  /** Begins as many as fit in memory, once the memory of earlier bodies is free. */
  async function untilAllBegun(): Promise<RawConnection[]> {
    let begun: RawConnection[] = [];
    await until('there is room for all of them', async () => {
      begun = await beginAll();
      if (begun.length < MOST) for (const each of begun) each[Symbol.dispose]();
      return begun.length === MOST;
    });
    return begun;
  }

  test('fill the memory; short ones still fit, and one that ends makes room', async () => {
    const begun = await beginAll();
    assert.equal(begun.length, MOST);

    using short = await target.open();
    for (const parts of [{}, { body: '' }]) {
      const id = target.nextId();
      const body = plantJson(id);
      short.write(target.request(id, 'body' in parts ? chunked(body) : { body }));
      await target.assertCreated(short, id);
    }
    using long = await target.open();
    long.write(target.request(GHOST_ID, chunked(`{"id":1,"name":"${'x'.repeat(50_000)}"}`)));
    await assertRejected(long, 50301);

    const last = begun.pop()!;
    last[Symbol.dispose]();
    const next: RawConnection[] = [];
    await until('there is room again', async () => {
      next.push(...[await begin()].filter(connection => connection !== undefined));
      return next.length > 0;
    });
    const id = target.nextId();
    next[0]!.write(plantJson(id).padEnd(BODY_MAX_BYTES));
    await target.assertCreated(next[0]!, id);
    next[0]!.write(longHeaders());
    assert.equal((await next[0]!.response()).status, 100, 'the memory of a body that was read is free');
    for (const connection of [...begun, ...next]) connection[Symbol.dispose]();
    for (const connection of await untilAllBegun()) connection[Symbol.dispose]();
  });

  test('release their memory when they are cut off while their token is looked up', async () => {
    const connections = await Promise.all(Array.from({ length: MOST }, () => target.open()));
    // A guess, so that the next token is looked up some time later.
    using guess = await target.open();
    guess.write(requestBytes(makeToken(), { headers: { 'X-Odd': '\tform' } }));
    await assertRejected(guess, 40102);
    const token = await addToken(target.service.database, 'new');
    const begun = requestBytes(token, { headers: { 'Content-Length': String(BODY_MAX_BYTES) }, body: '{' });
    await Promise.all(connections.map(connection => writeApart(connection, begun)));
    for (const connection of connections) connection[Symbol.dispose]();

    using last = await target.open();
    const id = target.nextId();
    last.write(requestBytes(token, { body: plantJson(id) }));
    await target.assertCreated(last, id);
    for (const connection of await untilAllBegun()) connection[Symbol.dispose]();
  });

  test('have no room that belongs to a long response, until the client reads it', async () => {
    const begun = await untilAllBegun();
    using slow = begun.pop()!;
    slow.socket.pause();
    const id = target.nextId();
    const body = `${`{"id":${id},"name":"`.padEnd(BODY_MAX_BYTES - 2, 'x')}"}`;
    slow.write(body);
    let sent = 1;
    const isUnread = (): boolean => (serverSideOf(slow)?.writableLength ?? 0) > 0;
    await until('a response does not fit the buffers between client and service', async () => {
      // Until then, it has the memory that the next body needs.
      const responses = (): number => (serverSideOf(slow)?.bytesWritten ?? 0) / BODY_MAX_BYTES;
      await until('the response is sent or not taken', () => isUnread() || responses() > sent - 0.5);
      // Time for the system to take it, and for the service to notice that.
      await wait(100);
      await target.assertAlive();
      if (isUnread()) return true;
      slow.write(target.request(id, { body }));
      sent++;
      return false;
    });
    assert.equal(await begin(), undefined);
    slow.socket.resume();
    for (; sent > 0; sent--) assert.equal((await slow.response()).status, 200);
    for (const each of begun) each[Symbol.dispose]();
  });

  test('in chunks are rejected when they outgrow the memory, which others can then use', async () => {
    const begun = await untilAllBegun();
    begun.pop()![Symbol.dispose]();
    const ids = [GHOST_ID, target.nextId()];
    const [first, second] = await Promise.all(
      ids.map(async id => {
        const bytes = target.request(id, chunked(plantJson(id).padEnd(1_000_000)));
        const connection = await target.open();
        await writeApart(connection, bytes.subarray(0, 200_000));
        return { connection, rest: bytes.subarray(200_000) };
      }),
    );
    first!.connection.write(first!.rest);
    await assertRejected(first!.connection, 50301);
    second!.connection.write(second!.rest);
    await target.assertCreated(second!.connection, ids[1]!);
    for (const each of [...begun, first!.connection, second!.connection]) each[Symbol.dispose]();
  });
});
