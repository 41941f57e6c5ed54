import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failureLog, type LOG_RATE, rateLimitedLog } from '../../src/operate/log/rate-limited-log.ts';

const SHORT: typeof LOG_RATE = { burstLines: 1, intervalMs: 500 };

test('of frequent changes a failure log logs the first, and later a failure that lasts', t => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
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
  assert.deepEqual(lines.splice(0), ['failed: first', 'recovered']);
  const events: string[] = [];
  const logEvent = rateLimitedLog(({ err, suppressed }) => events.push(`${err} ${suppressed}`), SHORT);
  for (const event of ['first', 'second', 'third']) logEvent(event);
  assert.deepEqual(events.splice(0), ['first 0']);

  nowMs += SHORT.intervalMs;
  log.failed('later');
  log.recovered();
  assert.deepEqual(lines, ['failed: later', 'recovered']);
  logEvent('fourth');
  assert.deepEqual(events, ['fourth 2'], 'the events without a line are counted');
});
