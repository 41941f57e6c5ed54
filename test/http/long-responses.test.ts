import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BODY_BYTES_SETTING_MAX } from '../../src/contract/limits.ts';
import { LONG_BODIES_BYTES_MAX } from '../../src/http/limits.ts';
import type { RawConnection } from '../harness/raw-connection.ts';
import { serverSideOf } from '../harness/server-side.ts';
import { until } from '../harness/until.ts';
import { assertRejected, ConnectionTarget, GHOST_ID } from './connection-target.ts';

let target: ConnectionTarget;

before(async () => {
  target = await ConnectionTarget.start({ bodyBytesMax: BODY_BYTES_SETTING_MAX });
});
after(() => target.end());

/** A request whose response is too long for the buffers between the service and a client. */
function longRequest(id: number): Buffer {
  const start = `{"id":${id},"name":"`;
  return target.request(id, { body: `${start.padEnd(BODY_BYTES_SETTING_MAX - 2, 'x')}"}` });
}

// First, since garbage of other tests would hide the body.
test('an idle connection does not keep its last body in memory', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const buffered = (): number => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers;
  };
  const connection = await target.open();
  const { socket } = connection;
  const before = buffered();
  // Not by `response`, since the client must not keep the response.
  socket.removeAllListeners('data');
  socket.write(longRequest(target.nextId()));
  let left = BODY_BYTES_SETTING_MAX;
  while (left > 0) left -= ((await once(socket, 'data')) as [Buffer])[0].length;
  await until('the body is no longer in memory', () => buffered() < before + BODY_BYTES_SETTING_MAX / 2);
  connection[Symbol.dispose]();
});

test('a long response that is not read counts as a long body, until it is read', async () => {
  using opened = new DisposableStack();
  const open = async (): Promise<RawConnection> => opened.use(await target.open());
  const unread = await open();
  unread.socket.pause();
  const id = target.nextId();
  unread.write(longRequest(id));
  await until('its plant is stored', () => (serverSideOf(unread)?.writableLength ?? 0) > 0);

  const headers = { Expect: '100-continue', 'Content-Length': String(BODY_BYTES_SETTING_MAX) };
  const begin = async (): Promise<RawConnection> => {
    const connection = await open();
    connection.write(target.request(GHOST_ID, { headers, body: '' }));
    return connection;
  };
  const others = LONG_BODIES_BYTES_MAX / BODY_BYTES_SETTING_MAX - 1;
  for (let count = 0; count < others; count++) assert.equal((await (await begin()).response()).status, 100);
  await assertRejected(await begin(), 50301);

  unread.socket.resume();
  assert.equal((await unread.response()).headers.get('plant-id'), String(id));
  assert.equal((await (await begin()).response()).status, 100);
});
