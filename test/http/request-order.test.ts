import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SHORT_BODY_BYTES_MAX } from '../../src/http/limits.ts';
import { RawConnection, type RawResponse, requestBytes } from '../harness/raw-connection.ts';
import { addToken, startTestService } from '../harness/running-service.ts';

function revisionOf({ headers }: RawResponse): string | undefined {
  return headers.get('plant-revision');
}

test('a short request after a long and a rejected one becomes the later revision', async () => {
  await using service = await startTestService();
  const other = await addToken(service.database, 'other');
  using connection = await RawConnection.open(service.address.port);
  const rejected = requestBytes('', { target: '/elsewhere' });
  for (let id = 1; id <= 20; id++) {
    const long = `{"id":${id},"name":"first","x":"${'x'.repeat(SHORT_BODY_BYTES_MAX)}"}`;
    const short = requestBytes(other, { body: `{"id":${id},"name":"second"}` });
    connection.write(Buffer.concat([requestBytes(service.token, { body: long }), rejected, short]));
    const first = revisionOf(await connection.response());
    assert.equal((await connection.response()).status, 404);
    assert.deepEqual([first, revisionOf(await connection.response())], ['1', '2'], `id ${id}`);
  }
});
