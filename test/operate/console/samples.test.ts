import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, mock, suite, test } from 'node:test';
import type { PlantQueue } from '../../../src/core/commit/plant-commits.ts';
import { ERROR_NAMES } from '../../../src/core/contract/errors.ts';
import type { RequestResult } from '../../../src/core/response.ts';
import { SampleFile } from '../../../src/operate/console/sample-file.ts';
import { Samples } from '../../../src/operate/console/samples.ts';
import { Metrics } from '../../../src/operate/metrics.ts';
import { testFolder } from '../../harness/test-folder.ts';

const START = 1_800_000_003;
const DAY_SECONDS = 24 * 60 * 60;

suite('samples of the console', () => {
  let metrics: Metrics;
  let samples: Samples;
  /** The clock. The timers are apart from it, as in Node. */
  let now: number;

  /** Simulates seconds, in each of which the same happens. */
  function pass(seconds: number, happens: () => void = () => {}): void {
    for (let second = 0; second < seconds; second++) {
      happens();
      now++;
      mock.timers.tick(1_000);
    }
  }

  function start(): void {
    metrics = new Metrics('1.0.0', 'sqlite');
    const queue = { statistics: { plantsInFlight: 7 } } as PlantQueue;
    samples = new Samples(metrics, queue);
  }

  /** What the service calls after each response. */
  function respond(result: RequestResult, durationMs: number): void {
    for (const observer of [metrics, samples]) observer.responded({ result }, undefined, durationMs);
  }

  function read(second: number) {
    const { rings, ...rest } = JSON.parse(JSON.stringify(samples.after(second)));
    return { short: rings[0], long: rings[1], ...rest };
  }

  beforeEach(() => {
    now = START;
    mock.timers.enable({ apis: ['setTimeout'] });
    mock.method(Date, 'now', () => now * 1_000);
    start();
  });

  afterEach(() => {
    samples[Symbol.dispose]();
    mock.reset();
  });

  test('are rates of a second and of ten seconds, with errors by number and name', () => {
    pass(27, () => {
      respond('created', 2);
      respond('notJson', 0);
      respond('notJson', 0);
    });
    const { newest, short, long, startedAt } = read(0);
    assert.deepEqual([newest, startedAt], [START + 27, START * 1_000]);
    assert.deepEqual([short.interval, short.from, short.count], [1, START + 1, 27]);
    // The first interval began before the service. Its rate is a mean of ten seconds, too.
    assert.equal(long.columns.created[0], 0.7);
    assert.deepEqual([long.interval, long.from, long.count], [10, START + 7, 3]);
    for (const { columns } of [short, long]) {
      const names = ['40001 notJson', 'created', 'in flight', 'mean batch', 'mean commit', 'p50', 'p99'];
      assert.deepEqual(Object.keys(columns).sort(), names);
      const values = names.map(name => columns[name].at(-1));
      assert.deepEqual(values.slice(0, 5), [2, 1, 7, null, null]);
      assert.ok(Math.abs(values[5] - 2) < 0.01);
    }
    const later = read(newest - 3);
    assert.deepEqual([later.short.from, later.short.count, later.long.count], [newest - 2, 3, 1]);
  });

  test('have percentiles of all durations of ten seconds, which are no means of percentiles', () => {
    for (let second = 0; second < 7; second++)
      pass(1, () => {
        for (let count = 0; count < 100; count++) respond('created', second === 3 ? 500 : 1);
      });
    const { p50, p99 } = read(0).long.columns;
    assert.deepEqual([Math.round(p50[0]), Math.round(p99[0] / 10)], [1, 50]);
  });

  test('show seconds without a sample as such, and reach back 24 hours', () => {
    pass(5, () => respond('created', 1));
    now = START + 9;
    for (let count = 0; count < 10; count++) respond('created', 1);
    pass(1);
    assert.deepEqual(read(0).short.columns.created, [1, 1, 1, 1, 1, null, null, null, null, 2]);
    now = START + 2 * DAY_SECONDS;
    pass(1);
    const { newest, short, long } = read(0);
    assert.deepEqual([newest - short.from, short.count], [899, 900]);
    assert.deepEqual([newest - long.from - (newest % 10), long.count], [DAY_SECONDS - 10, 8_640]);
    assert.ok(short.columns.p50.every((value: unknown) => value === null));
  });

  test('forget what is after a time to which the clock was set back', () => {
    pass(30, () => respond('created', 1));
    now = START + 10;
    pass(2, () => respond('revised', 1));
    const { newest, short } = read(START + 30);
    assert.deepEqual([newest, short.count, short.columns.revised.slice(-2)], [START + 12, 12, [1, 1]]);
  });

  test('of 24 hours survive a restart in a file of at most 5 MB, and a damaged file is dropped', async () => {
    const path = join(testFolder(), 'plants.db-history');
    const onError = (cause: unknown) => assert.fail(String(cause));
    const restart = () => {
      samples[Symbol.dispose]();
      start();
      return new SampleFile(path, samples, onError);
    };
    {
      await using _file = restart();
      pass(27, () => {
        for (const name of ERROR_NAMES) respond(name, 0);
        respond('created', 2);
      });
    }
    assert.ok(statSync(path).size < 5_000_000, `the file has ${statSync(path).size} bytes`);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    // Between the two processes, nothing is measured.
    now += 40;
    const written = readFileSync(path);
    {
      await using _file = restart();
      pass(11, () => respond('created', 2));
      const { long } = read(0);
      assert.deepEqual(long.columns.created, [0.7, 1, 1, null, null, null, null, 1]);
      assert.deepEqual(long.columns['40001 notJson'].slice(0, 4), [0.7, 1, 1, null]);
    }
    // The clock was set back: what is after it is gone.
    writeFileSync(path, written);
    now = START + 12;
    {
      await using _file = restart();
      assert.deepEqual(read(0).long.columns.created, [0.7]);
    }
    for (const damage of [0, 40, written.length - 3]) {
      const damaged = Buffer.from(written);
      damaged[damage]! ^= 1;
      writeFileSync(path, damaged);
      await using _file = restart();
      assert.deepEqual(read(0).long.columns, {}, `byte ${damage}`);
    }
  });

  test('of a column that this version does not write end after 24 hours', () => {
    const newest = Math.floor(START / 10);
    const columns = new Map([['39999 gone', new Float64Array(8_640).fill(5)]]);
    samples.restore({ interval: 10, length: 8_640, newest, count: 8_640, columns });
    pass(20);
    assert.deepEqual(read(0).long.columns['39999 gone'].slice(-3), [5, null, null]);
  });

  test('replace no store of plants, follow no link and wait for no pipe', async () => {
    const folder = testFolder();
    const path = join(folder, 'plants.db-history');
    const write = async (): Promise<string> => {
      let failure = '';
      const onError = (cause: unknown) => {
        failure = String(cause);
      };
      await new SampleFile(path, samples, onError)[Symbol.asyncDispose]();
      return failure;
    };
    for (const name of [path, `${path}.partial`]) {
      new DatabaseSync(name).exec('CREATE TABLE kept (id)');
      const store = readFileSync(name);
      assert.match(await write(), /SQLite/);
      assert.deepEqual(readFileSync(name), store);
      rmSync(name);
      execFileSync('mkfifo', [name]);
      assert.equal(await write(), '');
      rmSync(path);
    }
    const other = join(folder, 'other');
    writeFileSync(other, 'kept');
    symlinkSync(other, `${path}.partial`);
    assert.equal(await write(), '');
    assert.equal(readFileSync(other, 'utf8'), 'kept');
    assert.ok(lstatSync(path).isFile());
    assert.deepEqual(readdirSync(folder).sort(), ['other', 'plants.db-history']);
    // After a failed write, no file takes the room that the store needs.
    rmSync(path);
    mkdirSync(path);
    assert.match(await write(), /EISDIR|ENOTEMPTY|EEXIST/);
    assert.deepEqual(readdirSync(folder).sort(), ['other', 'plants.db-history']);
  });
});
