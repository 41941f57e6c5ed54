import assert from 'node:assert/strict';
import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { childrenOf } from '../../harness/child-processes.ts';
import type { LoggedRequest } from '../../harness/client-log.ts';
import { PROGRAM, startServe } from '../../harness/program.ts';
import { RandomLoad } from '../../harness/random-load.ts';
import { SEED } from '../../harness/seeded-random.ts';
import { sqliteUnderTest } from '../../harness/store-under-test.ts';
import { faultsIn } from '../../harness/stored-revisions.ts';
import { until } from '../../harness/until.ts';

/** So many pages in the log make a checkpoint due: 400 KiB, which the load writes in less than a second. */
const CHECKPOINT_PAGES = 100;
/** Far more than is written between two of them. */
const LOG_BYTES_MAX = 64 * 1024 * 1024;
/** How often the log is begun anew and copied. */
const ROUNDS = 3;

const litestream = programOfPackage();
/** Of the service that Litestream runs: it would outlive Litestream. */
let servicePid: number | undefined;
let litestreamProcess: ChildProcess | undefined;
after(() => {
  // What a failed test has left behind would keep this process alive.
  litestreamProcess?.kill('SIGKILL');
  if (servicePid !== undefined) process.kill(servicePid, 'SIGKILL');
});

const database = await sqliteUnderTest().newDatabase();
const path = database.replace('sqlite:', '');
const folder = dirname(path);
const configFile = join(folder, 'litestream.yml');
// JSON is YAML. From this length on Litestream holds up those who write until nobody reads an older part of the log, and
// so begins it anew.
const replicated = {
  ...{ path, 'max-checkpoint-page-count': CHECKPOINT_PAGES },
  replicas: [{ type: 'file', path: join(folder, 'replica') }],
};
writeFileSync(configFile, JSON.stringify({ dbs: [replicated] }));
let restores = 0;
if (litestream !== undefined)
  test('started by Litestream as the manual has it, the service is killed under load: the next copy is whole', async () => {
    console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
    const log: LoggedRequest[] = [];
    let token = '';
    for (const isKilled of [true, false]) {
      const serve = await startServe(database, [], { executable: startScript() });
      const { child } = serve;
      litestreamProcess = child;
      servicePid = childrenOf(child.pid!)[0];
      assert.ok(servicePid !== undefined, 'Litestream runs the service');
      const hasEnded = once(child, 'close');
      token ||= serve.token;
      const load = new RandomLoad(serve.url, token, log, SEED + Number(isKilled));
      await load.inFlight();
      if (isKilled) {
        process.kill(servicePid, 'SIGKILL');
      } else {
        await until('the log was copied again and again while plants were stored', () => {
          assert.ok(statSync(`${path}-wal`).size < LOG_BYTES_MAX, 'the log stays short');
          return copiedRounds(serve.logged()) >= ROUNDS;
        });
        await load.stop();
        await until('the copy has all of it', async () => {
          // There is none before the first snapshot, nor between a kill and the next.
          const restored = await restore().catch(() => undefined);
          return restored !== undefined && (await faultsIn(`sqlite:${restored}`, log)).length === 0;
        });
        child.kill('SIGTERM');
      }
      // Each ends with the other.
      await Promise.all([hasEnded, load.ended()]);
      servicePid = undefined;
    }
    // Litestream's locks cost nobody a response.
    const statuses = new Set(log.flatMap(({ response }) => response?.status ?? []));
    assert.deepEqual([...statuses].sort(), [200, 400, 401]);
    const restored = await restore();
    assert.deepEqual(await faultsIn(`sqlite:${restored}`, log), []);
    using copy = new DatabaseSync(restored);
    assert.equal(copy.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok');
  });

/** The script of docs/operate/backup.md. @returns its path */
function startScript(): string {
  const script = join(folder, 'start.sh');
  const lines = [
    '#!/bin/sh',
    `rm -rf '${dirname(path)}/.${basename(path)}-litestream'`,
    `exec '${litestream}' replicate -config '${configFile}' -exec "'${process.execPath}' '${PROGRAM}' $*"`,
  ];
  writeFileSync(script, lines.join('\n'), { mode: 0o700 });
  return script;
}

/** Makes a store of the copy. @returns its path */
async function restore(): Promise<string> {
  const restored = join(folder, `restored-${++restores}.db`);
  await promisify(execFile)(litestream!, ['restore', '-config', configFile, '-o', restored, path]);
  return restored;
}

/** Of how many logs, begun anew each time, a part has been copied, by what Litestream has printed. */
function copiedRounds(lines: string[]): number {
  const segment = /msg="wal segment written".* position=(\w+\/\w+):\d+/;
  return new Set(lines.map(line => segment.exec(line)?.[1]).filter(Boolean)).size;
}

/** @returns undefined where npm has none */
function programOfPackage(): string | undefined {
  const platform = `${process.platform}-${process.arch}`;
  if (platform === 'linux-x64')
    return createRequire(import.meta.url).resolve(`@flydotio/litestream-${platform}/litestream`);
  console.log(`Not tested here: npm has no Litestream for ${platform}.`);
  return undefined;
}
