import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzing } from '../../faults/fuzz.ts';
import { sendingsOf } from '../harness/header-sections.ts';
import { RawConnection } from '../harness/raw-connection.ts';
import { startTestService } from '../harness/running-service.ts';
import { SEED } from '../harness/seeded-random.ts';
import { isLeftToNode } from '../harness/server-side.ts';

test('the fast path accepts what clients send', async () => {
  await using service = await startTestService();
  for (const { bytes } of sendingsOf('fast path', service.token)) {
    using connection = await RawConnection.open(service.address.port);
    const text = bytes.toString('latin1');
    connection.write(text.slice(0, text.indexOf('GET')));
    assert.equal((await connection.response()).status, 200, text);
    assert.ok(!isLeftToNode(connection), text);
  }
});

// A short run of the fault scenario. `npm run faults` also measures the times of responses.
test(`the same bytes have the same responses and stored plants on both paths, seed ${SEED}`, async () => {
  const { signal } = new AbortController();
  const order = { budgetMs: Infinity, roundsMax: 2, signal, tell: console.log, mutant: undefined };
  const { faults, measurements } = await fuzzing.run({ seed: SEED, ...order });
  assert.deepEqual(faults, []);
  // These check that the drawn requests cover what this test is for.
  const measured = (name: string): number => Number(measurements[name] ?? 0);
  const cases = measured('cases');
  // A busy machine has more inconclusive cases.
  assert.ok(measured('inconclusive cases') < cases / 10, `${measured('inconclusive cases')} of ${cases}`);
  assert.ok(measured('cases that begin with fast path headers') > cases / 3);
  for (const status of [200, 400, 401, 405, 415]) assert.ok(measured(`responses ${status}`) > 0, `${status}`);
});
