import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { RawConnection, type RawResponse, requestBytes } from '../harness/raw-connection.ts';
import { addToken, startTestService } from '../harness/running-service.ts';
import { enginesUnderTest } from '../harness/store-under-test.ts';

const ENGINES = await enginesUnderTest();

function revisionOf({ headers }: RawResponse): string | undefined {
  return headers.get('plant-revision');
}

suite('a later request of a connection becomes the later revision', () => {
  for (const under of ENGINES) {
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
});
