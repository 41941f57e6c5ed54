import assert from 'node:assert/strict';
import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import type { LoggedRequest } from './harness/client-log.ts';
import { PROGRAM, startServe } from './harness/program.ts';
import { RandomLoad } from './harness/random-load.ts';
import { SEED } from './harness/seeded-random.ts';
import { faultsIn } from './harness/stored-revisions.ts';
import { until } from './harness/until.ts';

/** So many pages in the log make a checkpoint due: 400 KiB, which the load writes in less than a second. */
const CHECKPOINT_PAGES = 100;
/** Far more than is written between two of them. */
const LOG_BYTES_MAX = 64 * 1024 * 1024;
/** How often the log is begun anew and copied. */
const ROUNDS = 3;

const litestream = programOfPackage();
const folder = mkdtempSync(join(tmpdir(), 'plant-store-litestream-'));
/** Of the service that Litestream runs: it would outlive Litestream. */
let servicePid: number | undefined;
let litestreamProcess: ChildProcess | undefined;
after(() => {
  // What a failed test has left behind would keep this process alive.
  litestreamProcess?.kill('SIGKILL');
  if (servicePid !== undefined) process.kill(servicePid, 'SIGKILL');
  rmSync(folder, { recursive: true });
});

if (litestream !== undefined)
  test('started by Litestream as the manual has it, the service is killed under load: the next copy is whole', async () => {
    console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
    const store = new ReplicatedStore();
    const log: LoggedRequest[] = [];
    let token = '';
    for (const isKilled of [true, false]) {
      const serve = await startServe(store.database, [], { executable: store.startScript() });
      const { child } = serve;
      litestreamProcess = child;
      servicePid = childOf(child.pid!);
      const hasEnded = once(child, 'close');
      token ||= serve.token;
      const load = new RandomLoad(serve.url, token, log, SEED + Number(isKilled));
      await load.underWay();
      if (isKilled) {
        process.kill(servicePid, 'SIGKILL');
      } else {
        await until('the log was copied again and again while plants were stored', () => {
          assert.ok(statSync(`${store.path}-wal`).size < LOG_BYTES_MAX, 'the log stays short');
          return copiedRounds(serve.logged()) >= ROUNDS;
        });
        await load.stop();
        await store.copyHasAllOf(log);
        child.kill('SIGTERM');
      }
      // Each ends with the other.
      await Promise.all([hasEnded, load.ended()]);
      servicePid = undefined;
    }
    // Litestream's locks cost nobody a response.
    const statuses = new Set(log.flatMap(({ answer }) => answer?.status ?? []));
    assert.deepEqual([...statuses].sort(), [200, 400, 401]);
    await store.assertRestored(log);
  });

/** A store, Litestream's copy of it, and what was restored from that. */
class ReplicatedStore {
  readonly path: string;
  readonly database: string;
  readonly #folder: string;
  readonly #configFile: string;
  #restored = 0;

  constructor() {
    this.#folder = mkdtempSync(join(folder, 'store-'));
    this.path = join(this.#folder, 'plants.db');
    this.database = `sqlite:${this.path}`;
    this.#configFile = join(this.#folder, 'litestream.yml');
    const replica = join(this.#folder, 'replica');
    // JSON is YAML. From this length on Litestream holds up those who write until nobody reads an older part of the log, and
    // so begins it anew.
    const database = {
      path: this.path,
      'max-checkpoint-page-count': CHECKPOINT_PAGES,
      replicas: [{ type: 'file', path: replica }],
    };
    writeFileSync(this.#configFile, JSON.stringify({ dbs: [database] }));
  }

  /** The script of docs/operate/backup.md. */
  startScript(): string {
    const script = join(this.#folder, 'start.sh');
    const lines = [
      '#!/bin/sh',
      `rm -rf '${dirname(this.path)}/.${basename(this.path)}-litestream'`,
      `exec '${litestream}' replicate -config '${this.#configFile}' -exec "'${process.execPath}' '${PROGRAM}' $*"`,
    ];
    writeFileSync(script, lines.join('\n'), { mode: 0o700 });
    return script;
  }

  async copyHasAllOf(log: readonly LoggedRequest[]): Promise<void> {
    await until('the copy has all of it', async () => {
      // There is none before the first snapshot, nor between a kill and the next.
      const restored = await this.#restore().catch(() => undefined);
      return restored !== undefined && (await faultsIn(`sqlite:${restored}`, log)).length === 0;
    });
  }

  async assertRestored(log: readonly LoggedRequest[]): Promise<void> {
    const restored = await this.#restore();
    assert.deepEqual(await faultsIn(`sqlite:${restored}`, log), []);
    using database = new DatabaseSync(restored);
    assert.equal(database.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok');
  }

  /** Makes a store of the copy. @returns its path */
  async #restore(): Promise<string> {
    const path = join(this.#folder, `restored-${++this.#restored}.db`);
    await promisify(execFile)(litestream!, ['restore', '-config', this.#configFile, '-o', path, this.path]);
    return path;
  }
}

/** Of how many logs, begun anew each time, a part has been copied, by what Litestream has printed. */
function copiedRounds(lines: string[]): number {
  const segment = /msg="wal segment written".* position=(\w+\/\w+):\d+/;
  return new Set(lines.map(line => segment.exec(line)?.[1]).filter(Boolean)).size;
}

/** The service that Litestream has started, by one of its threads. */
function childOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const children = threads.map(thread => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'));
  const [child] = children.join(' ').match(/\d+/g) ?? [];
  assert.ok(child !== undefined, 'Litestream runs the service');
  return Number(child);
}

/** @returns undefined where npm has none */
function programOfPackage(): string | undefined {
  const platform = `${process.platform}-${process.arch}`;
  if (platform === 'linux-x64')
    return createRequire(import.meta.url).resolve(`@flydotio/litestream-${platform}/litestream`);
  console.log(`Not tested here: npm has no Litestream for ${platform}.`);
  return undefined;
}
