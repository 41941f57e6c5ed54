import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { LOG_RATE } from '../../src/ops/rate-limited-log.ts';
import { FailureLog, rateLimitedLog } from '../../src/ops/rate-limited-log.ts';
import { until } from '../harness/until.ts';

/** The interval does not end while a test runs. */
const LONG: typeof LOG_RATE = { burstLines: 2, intervalMs: 600_000 };
const SHORT: typeof LOG_RATE = { burstLines: 1, intervalMs: 300 };

suite('a failure log', () => {
  function logOf(rate: typeof LOG_RATE): { log: FailureLog; lines: string[] } {
    const lines: string[] = [];
    const log = new FailureLog(
      cause => lines.push(`failed: ${cause}`),
      () => lines.push('recovered'),
      rate,
    );
    return { log, lines };
  }

  test('logs each change at once, nothing else, and no frequent changes', () => {
    const { log, lines } = logOf(LONG);
    log.recovered();
    for (let time = 0; time < 1_000; time++) {
      log.failed(time);
      log.failed('again');
      log.recovered();
      log.recovered();
    }
    assert.deepEqual(lines, ['failed: 0', 'recovered', 'failed: 1', 'recovered']);
  });

  test('logs no failure after the delay if it has ended', async () => {
    const { log, lines } = logOf(SHORT);
    log.failed('first');
    log.recovered();
    log.failed('second');
    log.recovered();
    await wait(SHORT.intervalMs * 2);
    assert.deepEqual(lines, ['failed: first', 'recovered']);
  });

  test('logs a lasting failure after the delay, with its last cause', async () => {
    const { log, lines } = logOf(SHORT);
    log.failed('first');
    log.recovered();
    log.failed('second');
    log.failed('third');
    assert.deepEqual(lines, ['failed: first', 'recovered']);
    // The timer of the log does not keep the process alive.
    await until('it is logged', () => lines.length === 3);
    assert.equal(lines[2], 'failed: third');
    log.recovered();
    assert.equal(lines[3], 'recovered');
  });
});

test('a rate-limited log logs the first event and the number of events without a line', async () => {
  const lines: string[] = [];
  const log = rateLimitedLog((cause, unsaid) => lines.push(`${cause} ${unsaid}`), SHORT);
  log('first');
  log('second');
  log('third');
  assert.deepEqual(lines, ['first 0']);
  await wait(SHORT.intervalMs * 2);
  log('fourth');
  assert.deepEqual(lines, ['first 0', 'fourth 2']);
});
