import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { LOG_RATE } from '../../src/ops/limits.ts';
import { ChangeLog, rateLimitedLog } from '../../src/ops/rate-limited-log.ts';
import { until } from '../harness/until.ts';

/** Never over while a test runs. */
const LONG: typeof LOG_RATE = { linesAtOnce: 2, intervalMs: 600_000 };
const SHORT: typeof LOG_RATE = { linesAtOnce: 1, intervalMs: 300 };

suite('a log of changes', () => {
  function logOf(rate: typeof LOG_RATE): { log: ChangeLog; said: string[] } {
    const said: string[] = [];
    const log = new ChangeLog(
      cause => said.push(`failed: ${cause}`),
      () => said.push('recovered'),
      rate,
    );
    return { log, said };
  }

  test('says each change at once, nothing that is no change, and is silent on what changes all the time', () => {
    const { log, said } = logOf(LONG);
    log.recovered();
    for (let time = 0; time < 1_000; time++) {
      log.failed(time);
      log.failed('again');
      log.recovered();
      log.recovered();
    }
    assert.deepEqual(said, ['failed: 0', 'recovered', 'failed: 1', 'recovered']);
  });

  test('says nothing after the silence of what works again', async () => {
    const { log, said } = logOf(SHORT);
    log.failed('first');
    log.recovered();
    log.failed('second');
    log.recovered();
    await wait(SHORT.intervalMs * 2);
    assert.deepEqual(said, ['failed: first', 'recovered']);
  });

  test('says after the silence what fails still, with its last cause', async () => {
    const { log, said } = logOf(SHORT);
    log.failed('first');
    log.recovered();
    log.failed('second');
    log.failed('third');
    assert.deepEqual(said, ['failed: first', 'recovered']);
    // The timer of the log itself keeps no process alive.
    await until('it is said', () => said.length === 3);
    assert.equal(said[2], 'failed: third');
    log.recovered();
    assert.equal(said[3], 'recovered');
  });
});

test('a paced log says the first and how many it left unsaid', async () => {
  const said: string[] = [];
  const log = rateLimitedLog((cause, unsaid) => said.push(`${cause} ${unsaid}`), SHORT);
  log('first');
  log('second');
  log('third');
  assert.deepEqual(said, ['first 0']);
  await wait(SHORT.intervalMs * 2);
  log('fourth');
  assert.deepEqual(said, ['first 0', 'fourth 2']);
});
