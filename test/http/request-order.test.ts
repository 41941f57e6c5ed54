import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { PLANT_INSERT, PostgresProxy } from '../harness/postgres-proxy.ts';
import { RawConnection, type RawResponse, requestBytes } from '../harness/raw-connection.ts';
import { addToken, startTestService } from '../harness/running-service.ts';
import { postgresUnderTest, sqliteUnderTest } from '../harness/store-under-test.ts';

const sqlite = sqliteUnderTest();
const postgres = await postgresUnderTest();

function revisionOf({ headers }: RawResponse): string | undefined {
  return headers.get('plant-revision');
}

suite('a later request of a connection becomes the later revision', () => {
  for (const under of [sqlite, postgres]) {
    test(`when a short body follows a long one and a rejected request, in ${under.name}`, async () => {
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

  test('when PostgreSQL is slow to store the first one; other ids do not wait for it', async () => {
    await using proxy = await PostgresProxy.start(postgres.server.port);
    await using service = await startTestService({ database: proxy.url(await postgres.newDatabase()) });
    using connection = await RawConnection.open(service.address.port);
    using another = await RawConnection.open(service.address.port);
    const holding = proxy.holdNext(PLANT_INSERT);
    connection.write(requestBytes(service.token, { body: '{"id":1,"name":"first"}' }));
    const held = await holding;
    connection.write(requestBytes(service.token, { body: '{"id":1,"name":"second"}' }));
    for (let id = 2; id <= 4; id++) {
      another.write(requestBytes(service.token, { body: `{"id":${id},"name":"other"}` }));
      assert.equal(revisionOf(await another.response()), '1');
    }
    await held.deliver();
    held.respond();
    const revisions = [revisionOf(await connection.response()), revisionOf(await connection.response())];
    assert.deepEqual(revisions, ['1', '2']);
  });
});
