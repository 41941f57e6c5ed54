import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { BODY_MAX_BYTES } from '../../../src/core/contract/limits.ts';
import { RateLimit } from '../../../src/core/tokens/rate-limit.ts';
import { makeToken } from '../../../src/core/tokens/token.ts';
import { runProgram, startServe } from '../../harness/program.ts';
import {
  ask,
  chunked,
  RawConnection,
  type RawResponse,
  type RequestParts,
  requestBytes,
} from '../../harness/raw-connection.ts';
import { contentType } from '../../harness/request-cases.ts';
import { assertErrorResponse } from '../../harness/response-assertions.ts';
import { addToken, startTestService } from '../../harness/running-service.ts';
import { sqliteUnderTest } from '../../harness/store-under-test.ts';
import { storedRevisions } from '../../harness/stored-revisions.ts';
import { writeApart } from '../../server/connection-target.ts';

const sqlite = sqliteUnderTest();
const HOUR_SECONDS = 3_600;

test('a token is granted a burst of all requests, which are refilled evenly in each window', () => {
  const limit = new RateLimit({ requests: 10, windowSeconds: 100 });
  const take = (seconds: number) => {
    const counted = limit.take(1, seconds * 1_000);
    return counted.kind === 'granted' ? 'granted' : counted.retryAfterSeconds;
  };
  for (let count = 0; count < 10; count++) assert.equal(take(0), 'granted');
  assert.deepEqual([take(0), take(4)], [10, 6]);
  assert.equal(take(10.1), 'granted', 'a tenth of the window refills one');
  assert.notEqual(take(10.1), 'granted');
  for (let count = 0; count < 10; count++) assert.equal(take(6_000), 'granted');
  assert.notEqual(take(6_000), 'granted', 'a long pause refills no more than all of it');
});

const REQUESTS = 5;
/** So slow that nothing is refilled within a test. */
const POLICY = { requests: REQUESTS, windowSeconds: HOUR_SECONDS };

function assertLimited(response: RawResponse): void {
  assertErrorResponse(response, 42901);
  const retryAfter = response.headers.get('retry-after');
  assert.match(retryAfter ?? '', /^[1-9][0-9]*$/);
  assert.equal(response.headers.get('ratelimit'), `"default";r=0;t=${retryAfter}`);
  assert.equal(response.headers.get('ratelimit-policy'), `"default";q=${REQUESTS};w=${HOUR_SECONDS}`);
}

test('over --rate-limit', async t => {
  const database = await sqlite.newDatabase();
  // Each test uses one. The requests of one token do not count for another.
  const tokens: string[] = [];
  for (const label of ['first', 'second', 'third', 'fourth']) tokens.push(await addToken(database, label));
  await using service = await startTestService({ database, rateLimit: POLICY });
  const { port } = service.address;

  const ways: [way: string, parts: RequestParts][] = [
    ['a plain create', {}],
    ['a create that its handler reads', { headers: { Expect: '100-continue' } }],
  ];
  for (const [way, parts] of ways) {
    await t.test(`${way} gets a 429 response; the responses before it name the requests left`, async () => {
      const token = tokens.pop()!;
      using connection = await RawConnection.open(port);
      for (let left = REQUESTS - 1; left >= 0; left--) {
        connection.write(requestBytes(token, parts));
        const response = await connection.response();
        assert.equal(response.status, 200, response.body);
        assert.equal(response.headers.get('ratelimit-policy'), `"default";q=${REQUESTS};w=${HOUR_SECONDS}`);
        assert.match(response.headers.get('ratelimit') ?? '', new RegExp(`^"default";r=${left};t=[0-9]+$`));
      }
      for (let count = 0; count < 3; count++) {
        connection.write(requestBytes(token, { ...parts, body: '{"id":2,"name":"B"}' }));
        assertLimited(await connection.response());
      }
      const stored = (await storedRevisions(service.database)).map(({ plant }) => plant.id);
      assert.deepEqual(stored, [1n], 'no rejected plant is stored');
    });
  }

  await t.test('each request counts once, in any number of chunks', async () => {
    const token = tokens.pop()!;
    using connection = await RawConnection.open(port);
    const bytes = requestBytes(token);
    for (const [size, left] of [
      [50, 4],
      [bytes.length - 5, 3],
    ] as const) {
      for (let sent = 0; sent < bytes.length; sent += size)
        await writeApart(connection, bytes.subarray(sent, sent + size));
      assert.match((await connection.response()).headers.get('ratelimit')!, new RegExp(`r=${left};`));
    }
    // After a slow body, the token is validated again, but the request is not counted again.
    using slow = await RawConnection.open(port);
    slow.write(requestBytes(token, { headers: { Expect: '100-continue' } }).subarray(0, -5));
    assert.equal((await slow.response()).status, 100);
    await wait(1_500);
    slow.write(bytes.subarray(-5));
    assert.match((await slow.response()).headers.get('ratelimit')!, /r=2;/);
    assert.match((await ask(port, token)).headers.get('ratelimit')!, /r=1;/);
  });

  await t.test(
    'the limit is checked after the credential and before all else, and invalid requests count',
    async () => {
      const token = tokens.pop()!;
      const stranger = await ask(port, makeToken());
      assert.deepEqual([stranger.status, stranger.headers.get('ratelimit')], [401, undefined]);
      const faulty: [status: number, parts: RequestParts][] = [
        [400, { body: '{}' }],
        [413, chunked(' '.repeat(BODY_MAX_BYTES + 1))],
        [400, { target: '/plants?', body: '{}' }],
        [415, contentType('text/plain')],
        [415, { headers: { 'Content-Encoding': 'gzip' } }],
      ];
      for (const [index, [status, parts]] of faulty.entries()) {
        const response = await ask(port, token, parts);
        assert.equal(response.status, status);
        assert.match(response.headers.get('ratelimit') ?? '', new RegExp(`r=${REQUESTS - 1 - index};`));
      }
      for (const [, parts] of faulty) assertLimited(await ask(port, token, parts));
      assertLimited(await ask(port, token, { headers: { Expect: '100-continue' }, body: '' }));
    },
  );
});

test('import continues at the rate that the service allows, reports that once, and loses nothing', async () => {
  const rows = 60;
  await using limited = await startServe(await sqlite.newDatabase(), ['--rate-limit', '20/s']);
  const csv = Array.from({ length: rows }, (_, row) => `${row},name ${row}\n`).join('');
  const { exitCode, stdout, stderr } = await runProgram(
    ['import', '--url', limited.url, '--token', limited.token, '-'],
    { stdin: `id,name\n${csv}`, cwd: tmpdir() },
  );
  assert.match(stdout, /^60 rows: 60 created, 0 unchanged, 0 replaced, 0 rejected/);
  assert.equal(exitCode, 0);
  assert.equal(
    stderr,
    'the service limits the request rate of this token; the import continues at that rate\n',
  );
});
