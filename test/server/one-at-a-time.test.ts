import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALONE_PLANTS_MIN } from '../../src/core/commit/group-commit.ts';
import { CalledThread } from '../../src/engines/sqlite/threads/called-thread.ts';
import { RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { startTestService } from '../harness/running-service.ts';

test('the event loop waits for a commit only while a client sends one plant at a time', async t => {
  const { mock } = t.mock.method(CalledThread.prototype, 'awaitReply');
  await using service = await startTestService();
  const { token, address } = service;
  using connection = await RawConnection.open(address.port);
  const send = async (plants: number) => {
    const before = mock.callCount();
    connection.write(Buffer.concat(Array<Buffer>(plants).fill(requestBytes(token))));
    for (let each = 0; each < plants; each++) assert.equal((await connection.response()).status, 200);
    return mock.callCount() - before;
  };
  assert.equal(await send(1), 0, 'at the beginning');
  for (let each = 0; each < ALONE_PLANTS_MIN; each++) await send(1);
  assert.equal(await send(1), 1, 'after many plants, one at a time');
  await send(2);
  assert.equal(await send(1), 0, 'after two plants at once');
});
