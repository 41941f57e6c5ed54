import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CalledThread } from '../../src/engines/sqlite/threads/called-thread.ts';
import { RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { startTestService } from '../harness/running-service.ts';

/** More than the number of plain creates in a row after which a connection is the only sender. */
const MANY = 20;

test('a commit may block the event loop only for a connection that sends all requests', async t => {
  const { mock } = t.mock.method(CalledThread.prototype, 'awaitReply');
  await using service = await startTestService();
  const { token, address } = service;
  using one = await RawConnection.open(address.port);
  using other = await RawConnection.open(address.port);
  /** Sends creates one after the other. @returns whether the event loop waited for the last one */
  const send = async (connection: RawConnection, requests = 1) => {
    let before = 0;
    for (let sent = 0; sent < requests; sent++) {
      before = mock.callCount();
      connection.write(requestBytes(token));
      assert.equal((await connection.response()).status, 200);
    }
    return mock.callCount() > before;
  };
  const interruptions: [what: string, interrupt: () => Promise<unknown>][] = [
    ['another connection sends a plant', () => send(other)],
    [
      'another connection sends another request',
      () => {
        other.write(requestBytes(token, { method: 'DELETE' }));
        return other.response();
      },
    ],
    [
      'it does not wait for a response',
      () => {
        one.write(Buffer.concat([requestBytes(token), requestBytes(token)]));
        return Promise.all([one.response(), one.response()]);
      },
    ],
  ];
  assert.equal(await send(one), false, 'at the beginning');
  for (const [what, interrupt] of interruptions) {
    assert.equal(await send(one, MANY), true, `before ${what}`);
    await interrupt();
    assert.equal(await send(one), false, what);
  }
});
