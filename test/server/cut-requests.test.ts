import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzing } from '../../faults/fuzz.ts';
import { httpParsers } from '../../faults/http-parsers.ts';
import { sendingsOf } from '../harness/header-sections.ts';
import { startServe } from '../harness/program.ts';
import { chunked, RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { startTestService } from '../harness/running-service.ts';
import { SEED } from '../harness/seeded-random.ts';
import { sqliteUnderTest } from '../harness/store-under-test.ts';

const sqlite = sqliteUnderTest();

test('what clients send is accepted', async () => {
  await using service = await startTestService();
  for (const { bytes } of sendingsOf('plain', service.token)) {
    using connection = await RawConnection.open(service.address.port);
    const text = bytes.toString('latin1');
    connection.write(text.slice(0, text.indexOf('GET')));
    assert.equal((await connection.response()).status, 200, text);
  }
});

// A short run of the fault scenario. `npm run faults` also measures the times of responses.
test(`the same bytes have the same responses and stored plants, however they are cut, seed ${SEED}`, async () => {
  const { signal } = new AbortController();
  const order = { budgetMs: Infinity, roundsMax: 2, signal, tell: console.log, mutant: undefined };
  const { faults, measurements } = await fuzzing.run({ seed: SEED, ...order });
  assert.deepEqual(faults, []);
  // These check that the drawn requests cover what this test is for.
  const measured = (name: string): number => Number(measurements[name] ?? 0);
  const cases = measured('cases');
  // A busy machine has more inconclusive cases.
  assert.ok(measured('inconclusive cases') < cases / 10, `${measured('inconclusive cases')} of ${cases}`);
  for (const status of [200, 400, 401, 405, 415]) assert.ok(measured(`responses ${status}`) > 0, `${status}`);
});

// Each has hundreds of requests in one write, and bodies in many pieces.
for (const [what, nodeArgs] of [
  ['that reads into one buffer', []],
  ['without the undocumented parts of Node', withoutUndocumentedParts()],
] as const)
  test(`a service ${what} reads requests of any length`, async () => {
    await using serve = await startServe(await sqlite.newDatabase(), [], { nodeArgs: [...nodeArgs] });
    using connection = await RawConnection.open(Number(new URL(serve.url).port));
    const bodyOf = (id: number) => `{"id":${id},"name":"${'x'.repeat(id % 7 === 0 ? 200_000 : 10)}"}`;
    const requests = Array.from({ length: 210 }, (_, index) => {
      const id = index + 1;
      return requestBytes(serve.token, id % 5 === 0 ? chunked(bodyOf(id)) : { body: bodyOf(id) });
    });
    connection.socket.end(Buffer.concat(requests));
    for (let id = 1; id <= 210; id++)
      assert.equal((await connection.response()).headers.get('plant-id'), `${id}`);
    assert.equal(await connection.ended, 'closed');
  });

/** Arguments of Node that remove what `shared-read-buffer.ts` uses. */
function withoutUndocumentedParts(): string[] {
  const program = `
    import { createServer } from 'node:net';
    const server = createServer().listen(0, () => {
      for (let part = server._handle; part; part = Object.getPrototypeOf(part)) delete part.useUserBuffer;
      if (server._handle.useUserBuffer) throw new Error('it is still there');
      server.close();
    });`;
  return ['--import', `data:text/javascript,${encodeURIComponent(program)}`];
}

// A short run of the fault scenario.
test(`no request is taken that Node’s HTTP parser rejects or reads in another way, seed ${SEED}`, async () => {
  const { signal } = new AbortController();
  const order = { budgetMs: Infinity, roundsMax: 8, signal, tell: console.log, mutant: undefined };
  const { faults, measurements } = await httpParsers.run({ seed: SEED, ...order });
  assert.deepEqual(faults, []);
  assert.ok(Number(measurements.requests) > 1_500);
});
