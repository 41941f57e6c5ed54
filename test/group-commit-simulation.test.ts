import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { suite, test } from 'node:test';
import type { GroupCommit } from '../src/store/group-commit.ts';
import { noCounts, simulateGroupCommit } from './harness/group-commit-simulation.ts';
import { SEED } from './harness/seeded-random.ts';

const RUNS = 2_000;
const FIRST_SEED = SEED * RUNS;
const SOURCE = new URL('../src/store/group-commit.ts', import.meta.url);

/** Faults that a change could bring in, each as the text that it changes. */
const BROKEN: [what: string, from: string, to: string][] = [
  [
    'answers before the engine',
    'this.#batchesInFlight++;',
    'this.#batchesInFlight++; for (const each of batch) each.settle({ outcome: "created", revision: 1 });',
  ],
  [
    'gives results to the wrong plants',
    'waiting.settle(results[index]!)',
    'waiting.settle(results.at(-1 - index)!)',
  ],
  [
    'confirms a batch that failed',
    "waiting.settle({ refused: 'storeUnavailable' });",
    'waiting.settle({ outcome: "created", revision: 1 });',
  ],
  [
    'forgets the last plant of a batch that failed',
    '[...batch, ...this.#takeLongQueued()]',
    '[...batch.slice(0, -1), ...this.#takeLongQueued()]',
  ],
  ['leaves those that have waited long', '[...batch, ...this.#takeLongQueued()]', 'batch'],
  [
    'settles the whole queue with a batch that failed',
    'first === -1 ? this.#queue.length : first',
    'this.#queue.length',
  ],
  [
    'does not go on behind a failure',
    "waiting.settle({ refused: 'storeUnavailable' });\n    }\n    this.#dispatch();",
    "waiting.settle({ refused: 'storeUnavailable' });\n    }",
  ],
  ['takes the newest first', 'this.#queue.splice(0, count)', 'this.#queue.splice(-count, count)'],
  [
    'makes a batch too many',
    'this.#batchesInFlight < this.#engine.commitsInFlightMax',
    'this.#batchesInFlight <= this.#engine.commitsInFlightMax',
  ],
  ['makes a batch too large', 'count < BATCH_PLANTS_MAX', 'count <= BATCH_PLANTS_MAX'],
  [
    'puts too much text into a batch',
    'textLength + next > BATCH_TEXT_LENGTH_MAX',
    'textLength > BATCH_TEXT_LENGTH_MAX',
  ],
  [
    'makes a batch of each plant as it comes',
    'this.#clock.atEndOfTurn(() => this.#dispatch());',
    'this.#dispatch();',
  ],
  [
    'takes a plant too many',
    'this.#queue.length >= QUEUE_PLANTS_MAX',
    'this.#queue.length > QUEUE_PLANTS_MAX',
  ],
  [
    'forgets text that left the queue with a failure',
    'for (const { textLength } of taken) this.#queueTextLength -= textLength;',
    '',
  ],
  ['forgets plants that left with a failure', 'this.#underWay -= taken.length;', ''],
  ['takes more than the pace allows', 'this.#underWay >= this.#underWayMax ||', ''],
  ['tells of each failure', 'if (!this.#failing) {', '{'],
  ['does not tell of the recovery', 'this.#watcher.storeRecovered();', ''],
  [
    'ends close with a batch in flight',
    'this.#queue.length === 0 && this.#batchesInFlight === 0',
    'this.#queue.length === 0',
  ],
  ['never ends close behind a failure', 'this.#dispatch();\n    this.#settleClose();', 'this.#dispatch();'],
  [
    'takes plants behind close',
    "if (this.#closed !== undefined) return Promise.resolve({ refused: 'shuttingDown' });",
    '',
  ],
];

test(`group commit keeps every promise whatever ${RUNS} seeds bring about`, async t => {
  t.diagnostic(`seed ${SEED}; PLANT_STORE_TEST_SEED gives it again`);
  const counts = noCounts();
  for (let run = 0; run < RUNS; run++) await simulateGroupCommit(FIRST_SEED + run, counts);
  const never = Object.entries(counts).filter(([, count]) => count === 0);
  assert.deepEqual(never, [], 'what never happened was not judged');
});

suite('the simulation finds out a group commit that', { concurrency: false }, () => {
  for (const [what, from, to] of BROKEN) {
    test(what, async () => {
      const Broken = await brokenGroupCommit(from, to);
      await assert.rejects(async () => {
        for (let run = 0; run < RUNS; run++) await simulateGroupCommit(FIRST_SEED + run, noCounts(), Broken);
      }, /^Error: seed [0-9]+: /);
    });
  }
});

/** Group commit from its source with a text changed. */
async function brokenGroupCommit(from: string, to: string): Promise<typeof GroupCommit> {
  const source = readFileSync(SOURCE, 'utf8');
  assert.equal(source.split(from).length, 2, `the source has this text once: ${from}`);
  const script = stripTypeScriptTypes(source.replace(from, () => to)).replaceAll(
    /from '(\.[^']+)'/g,
    (_, path) => `from '${new URL(path, SOURCE)}'`,
  );
  const module = await import(`data:text/javascript,${encodeURIComponent(script)}`);
  return module.GroupCommit;
}
