import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentRates } from '../../src/operate/health/recent-rates.ts';
import { Metrics } from '../../src/operate/metrics.ts';
import { ControlledClock } from '../harness/controlled-clock.ts';

test('the rates and the mean commit time follow what happens each second, and fall after it', () => {
  const clock = new ControlledClock();
  const metrics = new Metrics('1.0.0', 'sqlite');
  const recent = new RecentRates(metrics, clock);
  const second = (): void => {
    for (let count = 0; count < 8; count++) metrics.responded({ result: 'created' }, undefined, 0);
    for (let count = 0; count < 12; count++) metrics.responded({ result: 'notJson' }, undefined, 0);
    metrics.responded({ result: 'noSuchPath' }, undefined, 0);
    // This error is no rejection, because it is no fault of a client.
    metrics.responded({ result: 'storeUnavailable' }, undefined, 0);
    metrics.committed(6, 100);
    metrics.committed(2, 300);
    clock.advance(1_000);
  };
  assert.deepEqual(
    [recent.rates.rejectedPerSecond, recent.rates.confirmedPerSecond, recent.commitSeconds],
    [0, 0, 0],
  );
  second();
  assert.deepEqual(recent.rates, {
    rejectedPerSecond: 13 / 4,
    confirmedPerSecond: 8 / 4,
    mostFrequentError: 'notJson',
  });
  assert.ok(Math.abs(recent.commitSeconds - 0.2 / 4) < 1e-9);
  for (let count = 0; count < 100; count++) second();
  const { rejectedPerSecond, confirmedPerSecond } = recent.rates;
  assert.deepEqual([Math.round(rejectedPerSecond), Math.round(confirmedPerSecond)], [13, 8]);
  assert.ok(Math.abs(recent.commitSeconds - 0.2) < 1e-9);
  for (let count = 0; count < 100; count++) clock.advance(1_000);
  assert.ok(
    recent.rates.rejectedPerSecond < 1e-9 &&
      recent.rates.confirmedPerSecond < 1e-9 &&
      recent.commitSeconds < 1e-9,
  );
});
