import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { LOG_RATE } from '../../src/ops/rate-limited-log.ts';
import { failureLog, rateLimitedLog } from '../../src/ops/rate-limited-log.ts';

const SHORT: typeof LOG_RATE = { burstLines: 1, intervalMs: 500 };

test('a failure log logs each change at once, and of frequent changes a failure that lasts', async () => {
  const lines: string[] = [];
  const log = failureLog(
    ({ err }) => lines.push(`failed: ${err}`),
    () => lines.push('recovered'),
    SHORT,
  );
  log.recovered();
  log.failed('first');
  log.failed('again');
  log.recovered();
  log.recovered();
  log.failed('second');
  log.recovered();
  log.failed('third');
  assert.deepEqual(lines, ['failed: first', 'recovered']);
  await wait(SHORT.intervalMs * 2);
  log.failed('later');
  log.recovered();
  assert.deepEqual(lines, ['failed: first', 'recovered', 'failed: later', 'recovered']);
});

test('a rate-limited log logs the first event and the number of events without a line', async () => {
  const lines: string[] = [];
  const log = rateLimitedLog(({ err, unsaid }) => lines.push(`${err} ${unsaid}`), SHORT);
  log('first');
  log('second');
  log('third');
  assert.deepEqual(lines, ['first 0']);
  await wait(SHORT.intervalMs * 2);
  log('fourth');
  assert.deepEqual(lines, ['first 0', 'fourth 2']);
});
