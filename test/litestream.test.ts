import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import type { LoggedRequest } from './client-log.ts';
import { startServe } from './program.ts';
import { RandomLoad } from './random-load.ts';
import { SEED } from './seeded-random.ts';
import { faultsIn } from './stored-revisions.ts';
import { until } from './until.ts';

/** So many pages in the log make a checkpoint due: 400 KiB, which the load writes in less than a second. */
const CHECKPOINT_PAGES = 100;
/** Far more than is written between two of them. */
const LOG_BYTES_MAX = 64 * 1024 * 1024;
/** Rounds of the log that are copied before the fault. */
const ROUNDS = 3;

const litestream = programOfPackage();
const folder = mkdtempSync(join(tmpdir(), 'plant-store-litestream-'));
const started: ChildProcess[] = [];
after(() => {
  // What a failed test has left behind would keep this process alive.
  for (const child of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

// The second has Litestream hold up those who write until nobody reads an older part of the log.
for (const setting of ['min-checkpoint-page-count', 'max-checkpoint-page-count']) {
  if (litestream === undefined) break;
  test(`beside Litestream (${setting}) every plant is kept, and its copy brings them all back`, async () => {
    console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
    const store = new ReplicatedStore(setting);
    const serve = await startServe(`sqlite:${store.path}`);
    started.push(serve.child);
    const replicating = store.replicate();

    const log: LoggedRequest[] = [];
    const load = new RandomLoad(serve.url, serve.token, log, SEED);
    await until('the log was begun anew several times while plants were kept', () => {
      assert.equal(replicating.exitCode, null, store.litestreamLog);
      assert.ok(statSync(`${store.path}-wal`).size < LOG_BYTES_MAX, 'the log stays short');
      return store.copiedRounds >= ROUNDS;
    });
    await load.stop();
    // It refuses what it must, and everything else is kept: Litestream's locks cost nobody an answer.
    const statuses = new Set(log.map(({ answer }) => answer?.status));
    assert.deepEqual([...statuses].sort(), [200, 400, 401]);
    assert.deepEqual(await faultsIn(`sqlite:${store.path}`, log), []);

    await until(
      'the copy has all of it',
      async () => (await faultsIn(`sqlite:${await store.restore()}`, log)).length === 0,
    );
    for (const child of [serve.child, replicating]) {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    const restored = await store.restore();
    assert.deepEqual(await faultsIn(`sqlite:${restored}`, log), []);
    using database = new DatabaseSync(restored);
    assert.equal(database.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok');
    assert.doesNotMatch(store.litestreamLog, /level=(WARN|ERROR)/);
  });
}

/** A store, Litestream's copy of it, and what was restored from that. */
class ReplicatedStore {
  readonly path: string;
  litestreamLog = '';
  readonly #folder: string;
  readonly #configFile: string;
  #restored = 0;

  /** @param setting of Litestream, which says from which length of the log on it makes what checkpoint */
  constructor(setting: string) {
    this.#folder = join(folder, setting);
    mkdirSync(this.#folder);
    this.path = join(this.#folder, 'plants.db');
    this.#configFile = join(this.#folder, 'litestream.yml');
    const replica = join(this.#folder, 'replica');
    // JSON is YAML.
    const database = {
      path: this.path,
      [setting]: CHECKPOINT_PAGES,
      replicas: [{ type: 'file', path: replica }],
    };
    writeFileSync(this.#configFile, JSON.stringify({ dbs: [database] }));
  }

  /** Begins to copy, as a process of its own. */
  replicate(): ChildProcess {
    const child = spawn(litestream!, ['replicate', '-config', this.#configFile]);
    started.push(child);
    for (const output of [child.stdout, child.stderr])
      output.setEncoding('utf8').on('data', text => {
        this.litestreamLog += text;
      });
    return child;
  }

  /** How many rounds of the log have been copied; a snapshot begins another sequence of them. */
  get copiedRounds(): number {
    const segments = this.litestreamLog.matchAll(/msg="wal segment written".* position=(\w+\/\w+):/g);
    return new Set(Array.from(segments, ([, round]) => round)).size;
  }

  /** Makes a store of the copy. @returns its path */
  async restore(): Promise<string> {
    const path = join(this.#folder, `restored-${++this.#restored}.db`);
    await promisify(execFile)(litestream!, ['restore', '-config', this.#configFile, '-o', path, this.path]);
    return path;
  }
}

/** @returns undefined where npm has none */
function programOfPackage(): string | undefined {
  const platform = `${process.platform}-${process.arch}`;
  if (platform === 'linux-x64')
    return createRequire(import.meta.url).resolve(`@flydotio/litestream-${platform}/litestream`);
  console.log(`Not tested here: npm has no Litestream for ${platform}.`);
  return undefined;
}
