import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { barsOf, isReached } from '../bench/bars.ts';
import type { Results, Trial } from '../bench/results.ts';
import { median, quantile, spread } from './harness/statistics.ts';

suite('statistics of the benchmark', () => {
  test('the median is the value in the middle, or between the two in the middle', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 3, 2]), 2.5);
    assert.equal(median([7]), 7);
  });

  test('a quantile lies in a line between the two nearest values', () => {
    const values = [50, 10, 40, 20, 30];
    assert.equal(quantile(values, 0), 10);
    assert.equal(quantile(values, 0.25), 20);
    assert.equal(quantile(values, 0.9), 46);
    assert.equal(quantile(values, 1), 50);
  });

  test('no values have neither a quantile nor a spread', () => {
    assert.ok(Number.isNaN(median([])));
    assert.equal(spread([]), undefined);
  });

  test('values stay in their order', () => {
    const values = [3, 1, 2];
    assert.deepEqual(spread(values), { median: 2, min: 1, max: 3 });
    assert.deepEqual(values, [3, 1, 2]);
  });
});

suite('bars of the benchmark', () => {
  const WHAT = 'creates against a bare echo, 64 connections';

  test('a ratio is the median of the ratios within the rounds', () => {
    // The machine was half as fast in round 2; the ratio of the medians would be 1 and not 0.8.
    const trials = [
      ...[trial(1, 'node:http echo', 1000), trial(1, 'plant store, SQLite', 800)],
      ...[trial(2, 'plant store, SQLite', 400), trial(2, 'node:http echo', 500)],
      ...[trial(3, 'node:http echo', 800), trial(3, 'plant store, SQLite', 880)],
    ];
    const bar = barsOf(results(trials)).find(({ what }) => what === WHAT)!;
    assert.equal(bar.reached, 0.8);
    assert.equal(isReached(bar), true);
  });

  test('a round that lacks one side is left out, and a bar without any is not measured', () => {
    const trials = [trial(1, 'node:http echo', 1000), trial(2, 'plant store, SQLite', 800)];
    const bar = barsOf(results(trials)).find(({ what }) => what === WHAT)!;
    assert.equal(bar.reached, undefined);
    assert.equal(isReached(bar), undefined);
  });

  test('a bar on what must be small is held from below', () => {
    const bar = { what: '', direction: '≤', required: 2 } as const;
    assert.equal(isReached({ ...bar, reached: 2 }), true);
    assert.equal(isReached({ ...bar, reached: 2.01 }), false);
  });
});

function trial(round: number, subject: string, ratePerSecond: number): Trial {
  const latencies = { p50Us: 1, p99Us: 1, p999Us: 1, maxUs: 1 };
  const drive = { connections: 64, ratePerSecond, requests: 1, failures: 0, cpuUs: 1, residentBytes: 1 };
  return {
    ...{ round, subject, kind: 'floor', ids: 'ascending', startMs: 1, residentPeakBytes: 1 },
    drives: [{ ...drive, ...latencies }],
  };
}

function results(trials: Trial[]): Results {
  return {
    date: '',
    machine: { cpu: '', memoryBytes: 0, kernel: '', fileSystem: '', versions: {} },
    settings: { rounds: 1, warmUpSeconds: 1, seconds: 1, importFile: '' },
    stolenShare: undefined,
    ...{ trials, failures: [], fsyncs: [], batchInserts: [], imports: [], openLoops: [] },
  };
}
