import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import type { Confirmed, PlantQueue } from '../../src/core/commit/plant-commits.ts';
import { StoreInternalError, StoreUnavailable } from '../../src/core/commit/store-errors.ts';
import { SqliteEngine } from '../../src/engines/sqlite/sqlite-engine.ts';
import { CalledThread } from '../../src/engines/sqlite/threads/called-thread.ts';
import type { HistoryRequest } from '../harness/linearizable.ts';
import { FAILS, ModelSqlite, TERMINATED } from './model-sqlite.ts';
import { count, type Happened, type Part } from './part.ts';
import { Scheduler } from './scheduler.ts';
import { SentPlants } from './sent-plants.ts';

/** No thread opens it, so any file will do. */
const PATH = fileURLToPath(import.meta.url);
const TROUBLE_MS = 2_000;
/** With healthy threads for this long, every call succeeds. */
const RECOVERY_MS = 1_000;
const HEALTHY_MS = 600;
const IDLE_MS = 500;
/** Longest time of a call. Several operations may hang one after the other. */
const CALL_MAX_MS = 10_000;
const HEALTHY_CALL_MAX_MS = 300;
const IDS = 20;
/** SQLite writes plants in the order in which they are queued, so all have one sender. */
const SENDER = 0;
const SEARCH_PROGRAM = new URL('search-thread.ts', import.meta.url);

/** The service and its callers: what they send, and what must be true of each result. */
class Simulation {
  readonly #scheduler: Scheduler;
  readonly #happened: Happened;
  readonly #model: ModelSqlite;
  readonly #search: CalledThread<number, string>;
  readonly #sent: SentPlants;
  #engine!: SqliteEngine;
  #queue!: PlantQueue;
  /** Calls that are not settled. */
  #pending = 0;
  #plants = 0;
  #searches = 0;
  #confirmed = 0;
  /** The last confirmed commit that changed something. */
  #confirmedCommit = 0;
  /** From this time on, no call may fail. */
  #healthyFromMs = Number.POSITIVE_INFINITY;
  /** Whether each plant is sent after the result of the one before it. */
  readonly #isOneAtATime: boolean;
  #plantsInFlight = 0;
  /** Whether the callers make no calls. */
  #isIdle = false;
  #isClosing = false;
  #isOver = false;

  constructor(seed: number, happened: Happened) {
    this.#scheduler = new Scheduler(seed);
    this.#happened = happened;
    this.#model = new ModelSqlite(this.#scheduler, happened);
    this.#sent = new SentPlants(this.#scheduler);
    this.#isOneAtATime = this.#scheduler.happens(30);
    this.#search = new CalledThread('search', SEARCH_PROGRAM, PATH, this.#model.startWorker);
  }

  async run(): Promise<number> {
    const scheduler = this.#scheduler;
    let hasEnded = false;
    void scheduler.start(async () => {
      await this.#serve();
      hasEnded = true;
    });
    const endMs = scheduler.now() + TROUBLE_MS + RECOVERY_MS + HEALTHY_MS + IDLE_MS + 4 * CALL_MAX_MS;
    await scheduler.runUntil(endMs, () => this.#check());
    assert.ok(hasEnded && this.#pending === 0, 'something waits for ever');
    assert.equal(this.#model.running.size, 0, 'a thread runs after the end');
    this.#sent.check([...this.#model.disk.values()].flat());
    return scheduler.steps;
  }

  async #serve(): Promise<void> {
    const scheduler = this.#scheduler;
    const model = this.#model;
    await this.#open();
    const tasks = [
      ...Array.from({ length: 3 }, () => this.#repeat(200, async () => this.#write())),
      this.#repeat(400, () => this.#operate()),
      ...Array.from({ length: 2 }, () => this.#repeat(300, () => this.#find())),
      this.#repeat(1_000, () => this.#disturb()),
    ];
    const isClosedInTrouble = scheduler.happens(50);
    model.troubleUntilMs = scheduler.now() + TROUBLE_MS;
    await scheduler.pause(0, TROUBLE_MS);
    if (!isClosedInTrouble) await this.#recover();
    await this.#close();
    this.#isOver = true;
    await Promise.all(tasks);
  }

  async #open(): Promise<void> {
    const scheduler = this.#scheduler;
    const model = this.#model;
    const settings = { path: PATH, repeatedIdRule: 'revise', lockFile: undefined } as const;
    if (scheduler.happens(10)) model.troubleUntilMs = Number.POSITIVE_INFINITY;
    for (;;) {
      try {
        this.#engine = await this.#settled(() => SqliteEngine.open(settings, scheduler, model.startWorker));
        break;
      } catch (error) {
        this.#checkFailure(error);
        count(this.#happened, 'the store cannot be opened');
        assert.equal(model.running.size, 0, 'a store that was not opened has a thread');
      }
    }
    this.#queue = this.#engine.openQueue(async writes => {
      try {
        return await this.#settled(() => this.#engine.commit(writes));
      } catch (error) {
        // Group commit would hide a wrong error.
        void this.#scheduler.start(async () => this.#checkFailure(error));
        throw error;
      }
    });
  }

  /** Trouble ends. The files may still be replaced, which the next operation notices. */
  async #recover(): Promise<void> {
    const scheduler = this.#scheduler;
    this.#model.troubleUntilMs = 0;
    await scheduler.pause(RECOVERY_MS);
    this.#healthyFromMs = scheduler.now();
    const confirmed = this.#confirmed;
    await scheduler.pause(HEALTHY_MS);
    assert.ok(this.#confirmed > confirmed, 'a healthy store confirms plants');
    assert.deepEqual(await this.#engine.warnings(), []);
    this.#isIdle = true;
    // A checkpoint begins 100 ms after a commit, or after the checkpoint before it.
    await scheduler.pause(IDLE_MS);
    assert.ok(this.#model.copiedCommits >= this.#confirmedCommit, 'no checkpoint follows the last commit');
    this.#isIdle = false;
  }

  async #close(): Promise<void> {
    const scheduler = this.#scheduler;
    this.#isClosing = true;
    this.#healthyFromMs = Number.POSITIVE_INFINITY;
    const closing = [this.#queue.close(), this.#engine.close(), this.#search.close()];
    if (this.#pending > 0) count(this.#happened, 'closed while calls are pending');
    const [queue, ...threads] = await this.#settled(() => Promise.allSettled(closing));
    assert.equal(queue!.status, 'fulfilled');
    for (const thread of threads) if (thread.status === 'rejected') this.#checkFailure(thread.reason);
    const { started } = this.#model;
    assert.deepEqual(await this.#queue.write({ plant: { id: 1n, name: '' }, recordedBy: 0 }), {
      kind: 'notConfirmed',
      error: 'shuttingDown',
    });
    await assert.rejects(this.#engine.commit([]), /the writer thread is closed/);
    await assert.rejects(this.#engine.probe(), /the writer thread is closed/);
    await assert.rejects(this.#search.call(0), /the search thread is closed/);
    await scheduler.pause(100);
    assert.equal(this.#model.started, started, 'a thread is started after the end');
  }

  #repeat(pauseMsMax: number, action: () => Promise<void>): Promise<void> {
    const actUnlessIdle = async (): Promise<void> => {
      if (!this.#isIdle) await action();
    };
    return this.#scheduler.repeat(pauseMsMax, () => this.#isOver, actUnlessIdle);
  }

  /** Checks that a call settles in time. */
  async #settled<Result>(call: () => Promise<Result>): Promise<Result> {
    const beganAtMs = this.#scheduler.now();
    const isHealthy = beganAtMs >= this.#healthyFromMs;
    this.#pending++;
    try {
      return await call();
    } finally {
      this.#pending--;
      const tookMs = this.#scheduler.now() - beganAtMs;
      const isInTime = tookMs <= (isHealthy ? HEALTHY_CALL_MAX_MS : CALL_MAX_MS);
      assert.ok(isInTime, `a call took ${tookMs} ms`);
    }
  }

  /** Several plants at once. The caller waits for none of them before its next ones. */
  #write(): void {
    const scheduler = this.#scheduler;
    if (this.#isOneAtATime && this.#plantsInFlight > 0) return;
    const plants = this.#isOneAtATime ? 1 : scheduler.pick(1, 1, 1, 1, 3, 20);
    for (let each = 0; each < plants; each++) {
      const plant = { id: BigInt(scheduler.random(IDS)), name: `name ${scheduler.random(5)}` };
      const recordedBy = ++this.#plants;
      const beganAtMs = scheduler.now();
      const ifRevision = scheduler.pick(undefined, undefined, undefined, 0, 0, 1, 2, 5);
      void scheduler.start(async () => {
        const sent = this.#sent.send(plant, SENDER, recordedBy, ifRevision);
        this.#plantsInFlight++;
        const write = { plant, recordedBy, ifRevision };
        const result = await this.#settled(() => this.#queue.write(write));
        this.#plantsInFlight--;
        this.#sent.settle(sent, result);
        if ('revision' in result) this.#checkLatest(sent, result);
        if (result.kind === 'confirmed') this.#noteConfirmed(sent, result);
        else this.#checkError(result.error, beganAtMs);
      });
    }
  }

  #noteConfirmed({ plant }: HistoryRequest, { outcome, revision }: Confirmed): void {
    count(this.#happened, outcome);
    this.#confirmed++;
    const revisions = this.#model.disk.get(plant.id) ?? [];
    if (outcome !== 'unchanged')
      this.#confirmedCommit = Math.max(this.#confirmedCommit, revisions[revision - 1]?.commit ?? 0);
  }

  /** There is only one file, so a commit is seen at once, also if no response shows it. */
  #checkLatest({ plant, sentAt }: HistoryRequest, { revision }: { revision: number }): void {
    const revisions = this.#model.disk.get(plant.id) ?? [];
    const replacedAt = revisions[revision]?.storedAt ?? Number.POSITIVE_INFINITY;
    assert.ok(replacedAt >= sentAt, `revision ${revision} of plant ${plant.id} was not the latest one`);
  }

  #checkError(error: string, beganAtMs: number): void {
    count(this.#happened, `plant: ${error}`);
    if (error === 'idTaken' || error === 'plantChanged') return;
    if (error === 'shuttingDown') assert.ok(this.#isClosing);
    else assert.ok(beganAtMs < this.#healthyFromMs, `${error}, although the store is healthy`);
  }

  async #operate(): Promise<void> {
    const engine = this.#engine;
    const beganAtMs = this.#scheduler.now();
    const [operate, expected] = this.#scheduler.pick<[() => Promise<unknown>, (result: unknown) => boolean]>(
      [() => engine.probe(), result => result === undefined],
      [() => engine.warnings(), Array.isArray],
      [() => engine.tokenTable.tokenFingerprints(), result => result instanceof Map],
      [() => engine.firstPlantAt(), result => result === undefined || typeof result === 'number'],
    );
    try {
      const result = await this.#settled(operate);
      assert.ok(expected(result), `an operation returns the result of another one: ${result}`);
    } catch (error) {
      this.#checkFailure(error);
      assert.ok(beganAtMs < this.#healthyFromMs, 'an operation fails, although the store is healthy');
    }
  }

  async #find(): Promise<void> {
    const number = ++this.#searches;
    const beganAtMs = this.#scheduler.now();
    try {
      const isAwaited = this.#scheduler.happens(50);
      const reply = await this.#settled(() => {
        const called = this.#search.call(number);
        if (isAwaited) this.#search.awaitReply(1);
        return called;
      });
      assert.equal(Number(reply), number, 'a search gets the reply of another one');
    } catch (error) {
      this.#checkFailure(error);
      const { message } = error as Error;
      if (message.startsWith(FAILS)) assert.ok(message.startsWith(`${FAILS}: ${number} `), message);
      if (!message.includes('is closed'))
        assert.ok(beganAtMs < this.#healthyFromMs, 'a search fails, although the thread is healthy');
    }
  }

  /** Ends the search thread as its owner does, or replaces a file. */
  async #disturb(): Promise<void> {
    if (this.#scheduler.happens(50)) {
      if (!this.#model.hasTrouble) return;
      count(this.#happened, 'a file is replaced');
      this.#model.replacements++;
      return;
    }
    await this.#settled(() => this.#search.end());
  }

  /** An error must be one of the store, and be due. */
  #checkFailure(error: unknown): void {
    if (error instanceof assert.AssertionError) throw error;
    if (error instanceof StoreInternalError) {
      assert.equal((error.cause as Error).message, FAILS);
      return;
    }
    assert.ok(error instanceof StoreUnavailable, `a call fails with ${error}`);
    const { message } = error;
    assert.ok(!message.includes(TERMINATED), message);
    const [, reason] = /the \w+ thread (.*)/.exec(message) ?? [];
    if (reason !== undefined) count(this.#happened, `a thread ${reason}`);
  }

  /** Checks the state after a step and its consequences. */
  #check(): void {
    this.#sent.checkResults();
    const isIdle = this.#pending === 0;
    if (isIdle && this.#queue) assert.equal(this.#queue.statistics.plantsInFlight, 0, 'a queue is not empty');
    if (isIdle && this.#queue) assert.equal(this.#queue.statistics.batchesInFlight, 0);
  }
}

export const sqliteThread: Part = {
  name: 'sqlite-thread',
  simulate: (seed, happened) => new Simulation(seed, happened).run(),
};
