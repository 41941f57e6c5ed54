import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type Costs, predict } from '../bench/group-commit-model.ts';

/** Costs that make sums easy: cores for all three threads, and nothing but what a test sets. */
const NOTHING: Costs = {
  flushUs: 0,
  flushRowUs: 0,
  writerBatchUs: 0,
  writerRowUs: 0,
  writerWakeUs: 0,
  mainRequestUs: 0,
  mainBatchUs: 0,
  mainWakeUs: 0,
  clientRequestUs: 0,
  clientWakeUs: 0,
  wakeDelayUs: 0,
  cores: 3,
};
const ORDINARY: Costs = {
  flushUs: 120,
  flushRowUs: 0.3,
  writerBatchUs: 15,
  writerRowUs: 2,
  writerWakeUs: 30,
  mainRequestUs: 17,
  mainBatchUs: 20,
  mainWakeUs: 15,
  clientRequestUs: 5,
  clientWakeUs: 10,
  wakeDelayUs: 6,
  cores: 2,
};

suite('the model of group commit', () => {
  test('makes a lone plant wait for each part in turn', () => {
    const costs = {
      ...{ flushUs: 100, flushRowUs: 1, writerBatchUs: 10, writerRowUs: 2, writerWakeUs: 7 },
      ...{
        mainRequestUs: 30,
        mainBatchUs: 3,
        mainWakeUs: 11,
        clientRequestUs: 4,
        clientWakeUs: 9,
        wakeDelayUs: 5,
        cores: 3,
      },
    };
    const { p50Us, batchPlants, ratePerSecond } = predict(costs, { connections: 1 });
    // Woken are the main thread, the writer, the main thread again, and the load. The load takes half of its time
    // before the request is sent, which is no part of the latency.
    const wakingUs = 11 + 7 + 11 + 9 + 4 * 5;
    const expectedUs = 100 + 1 + 10 + 2 + 30 + 3 + 2 + wakingUs;
    assert.ok(Math.abs(p50Us - expectedUs) < 0.01, `${p50Us} µs`);
    assert.equal(batchPlants, 1);
    assert.ok(Math.abs(ratePerSecond - 1e6 / (expectedUs + 2)) < 0.1, `${ratePerSecond} requests a second`);
  });

  test('gives each plant a share of a slow flush', () => {
    const disk = { ...ORDINARY, flushUs: 10_000 };
    const alone = predict(disk, { connections: 1 });
    const many = predict(disk, { connections: 64 });
    assert.ok(alone.ratePerSecond < 100);
    assert.ok(many.ratePerSecond > alone.ratePerSecond * 30, `${many.ratePerSecond} requests a second`);
    assert.ok(many.p50Us < 25_000, 'waits for the flush under way and for its own');
  });

  test('is held up by the main thread alone, once enough connections share a flush', () => {
    const { ratePerSecond } = predict({ ...NOTHING, flushUs: 100, mainRequestUs: 20 }, { connections: 256 });
    assert.ok(Math.abs(ratePerSecond / 50_000 - 1) < 0.02, `${ratePerSecond} requests a second`);
  });

  test('shares the cores between the threads', () => {
    const costs = { ...NOTHING, flushUs: 100, mainRequestUs: 20, clientRequestUs: 20 };
    const two = predict({ ...costs, cores: 2 }, { connections: 256 }).ratePerSecond;
    const one = predict({ ...costs, cores: 1 }, { connections: 256 }).ratePerSecond;
    assert.ok(Math.abs(two / 50_000 - 1) < 0.02, `${two} requests a second on two cores`);
    assert.ok(Math.abs(one / 25_000 - 1) < 0.02, `${one} requests a second on one`);
  });

  test("keeps Little's law", () => {
    for (const connections of [1, 16, 256]) {
      const costs = { ...ORDINARY, clientRequestUs: 0 };
      const { ratePerSecond, p50Us } = predict(costs, { connections });
      const underWay = (ratePerSecond * p50Us) / 1e6;
      assert.ok(Math.abs(underWay / connections - 1) < 0.1, `${underWay} of ${connections}`);
    }
  });

  test('holds an open load that is below what a closed one reaches, and refuses one above', () => {
    const { ratePerSecond: most } = predict(ORDINARY, { connections: 256 });
    const { ratePerSecond, p50Us } = predict(ORDINARY, { ratePerSecond: most / 2 });
    assert.ok(Math.abs(ratePerSecond / (most / 2) - 1) < 0.01);
    assert.ok(p50Us > ORDINARY.flushUs && p50Us < 10 * ORDINARY.flushUs, `${p50Us} µs`);
    assert.throws(() => predict(ORDINARY, { ratePerSecond: most * 1.1 }), RangeError);
  });

  test('says the same each time', () => {
    assert.deepEqual(predict(ORDINARY, { connections: 64 }), predict(ORDINARY, { connections: 64 }));
  });
});
