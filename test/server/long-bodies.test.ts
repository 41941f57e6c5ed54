import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { startServe } from '../harness/program.ts';
import { chunked, RawConnection, type RawResponse, requestBytes } from '../harness/raw-connection.ts';
import { assertErrorResponse, assertPlantResponse } from '../harness/response-assertions.ts';
import { addToken, startTestService } from '../harness/running-service.ts';
import { enginesUnderTest } from '../harness/store-under-test.ts';
import { storedRevisionsOf } from '../harness/stored-revisions.ts';
import { testFolder } from '../harness/test-folder.ts';

const ENGINES = await enginesUnderTest();
const folder = testFolder();

const MANY_MEMBERS = Array.from({ length: 20_000 }, (_, index) => `"${index}":0`).join();

/** Bodies that take long to read, and the expected error of each. */
const BODIES: [body: (id: number) => string, error?: number][] = [
  [id => `{"id":${id},"name":"a",${MANY_MEMBERS}}`],
  [id => `{"id":${id},"x":${'['.repeat(90_000)}${']'.repeat(90_000)},"name":"a"}`],
  [id => `{"id":${id},"name":"a",${MANY_MEMBERS},"0":0}`, 40002],
  [id => `{"id":${id},"name":"a",${MANY_MEMBERS}}}`, 40001],
];

test('long bodies of many parts are read one after the other, and short ones in between', async () => {
  const database = `sqlite:${join(folder, 'served.db')}`;
  await using serve = await startServe(database);
  const port = Number(new URL(serve.url).port);
  let isOver = false;
  let others = 0;
  const sendOthers = async (): Promise<void> => {
    using connection = await RawConnection.open(port);
    for (; !isOver; others++) {
      connection.write(requestBytes(serve.token, { body: `{"id":${-1 - others},"name":"other"}` }));
      assertPlantResponse(await connection.response(), { name: 'other' });
    }
  };
  // A short body follows each long one in the same write: the responses stay in order.
  const sendLong = async (first: number): Promise<void> => {
    using connection = await RawConnection.open(port);
    for (const [index, [bodyOf, error]] of BODIES.entries()) {
      const id = first + 2 * index;
      const long = bodyOf(id);
      const parts = first % 4 === 1 ? { body: long } : chunked(long);
      const short = requestBytes(serve.token, { body: `{"id":${id + 1},"name":"short"}` });
      connection.write(Buffer.concat([requestBytes(serve.token, parts), short]));
      const response = await connection.response();
      if (error !== undefined) assertErrorResponse(response, error);
      else {
        assertPlantResponse(response, { name: 'a' });
        assert.equal(response.headers.get('plant-id'), String(id));
      }
      const next = await connection.response();
      assertPlantResponse(next, { name: 'short' });
      assert.equal(next.headers.get('plant-id'), String(id + 1));
    }
  };
  const sendingOthers = sendOthers();
  await Promise.all([1, 1_003, 2_001, 3_003].map(sendLong));
  isOver = true;
  await sendingOthers;
  // This client sends one at a time, so the event loop must continue between the long bodies.
  assert.ok(others > BODIES.length, `${others} short ones`);

  // Clients that disconnect leave no work that would delay the end.
  const gone = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(port)));
  const long = requestBytes(serve.token, { body: BODIES[0]![0](5_000) });
  for (const connection of gone) connection.socket.end(long, () => connection[Symbol.dispose]());
  const { exitCode } = await serve.stop('SIGTERM');
  assert.equal(exitCode, 0);

  for (const [index, [, error]] of BODIES.entries()) {
    const revisions = await storedRevisionsOf(database, BigInt(1 + 2 * index));
    assert.equal(revisions.length, error === undefined ? 1 : 0);
  }
});

function revisionOf({ headers }: RawResponse): string | undefined {
  return headers.get('plant-revision');
}

for (const under of ENGINES) {
  test(`a short body after a long one and a rejected request becomes the later revision, in ${under.name}`, async () => {
    const database = await under.newDatabase();
    await using service = await startTestService({ database });
    const other = await addToken(database, 'other');
    using connection = await RawConnection.open(service.address.port);
    const rejected = requestBytes('', { target: '/elsewhere' });
    for (let id = 1; id <= 5; id++) {
      // Reading it takes many event-loop iterations.
      const long = `{"id":${id},"name":"first","x":[${'1,'.repeat(300_000)}1]}`;
      const short = requestBytes(other, { body: `{"id":${id},"name":"second"}` });
      connection.write(Buffer.concat([requestBytes(service.token, { body: long }), rejected, short]));
      const first = revisionOf(await connection.response());
      assert.equal((await connection.response()).status, 404);
      assert.deepEqual([first, revisionOf(await connection.response())], ['1', '2'], `id ${id}`);
    }
  });
}
