import assert from 'node:assert/strict';
import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
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

/**
 * Litestream makes a checkpoint at this length: 400 KiB. The load needs less than a second for it.
 */
const CHECKPOINT_PAGES = 100;
/** Much longer than the log gets between two checkpoints. */
const WAL_MAX_BYTES = 64 * 1024 * 1024;
/** Restarts of the log that the test waits for. */
const WAL_RESTARTS = 3;

const litestream = programOfPackage();
/** The service that Litestream starts. It would outlive a killed Litestream. */
let servicePid: number | undefined;
let litestreamProcess: ChildProcess | undefined;
after(() => {
  // The processes of a failed test would keep this process alive.
  litestreamProcess?.kill('SIGKILL');
  if (servicePid !== undefined) process.kill(servicePid, 'SIGKILL');
});

const sqlite = sqliteUnderTest();
const database = await sqlite.newDatabase();
const path = database.replace('sqlite:', '');
const folder = dirname(path);
const configFile = join(folder, 'litestream.yml');
// JSON is valid YAML. At this length Litestream blocks writers until no reader uses an older part
// of the log. Then it restarts the log.
const replicated = {
  path,
  'max-checkpoint-page-count': CHECKPOINT_PAGES,
  replicas: [{ type: 'file', path: join(folder, 'replica') }],
};
writeFileSync(configFile, JSON.stringify({ dbs: [replicated] }));
let restores = 0;
if (litestream !== undefined)
  test('under Litestream, started as documented, a killed service loses nothing in the next copy', async () => {
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
        await until('the log is restarted and copied several times under load', () => {
          assert.ok(statSync(`${path}-wal`).size < WAL_MAX_BYTES, 'the log stays short');
          return copiedRestarts(serve.logged()) >= WAL_RESTARTS;
        });
        await load.stop();
        await until('the copy is complete', async () => {
          // No copy exists before the first snapshot, and between a kill and the next snapshot.
          const restored = await restore().catch(() => undefined);
          return restored !== undefined && (await faultsIn(`sqlite:${restored}`, log)).length === 0;
        });
        child.kill('SIGTERM');
      }
      // Litestream ends with the service, and the service with Litestream.
      await Promise.all([hasEnded, load.ended()]);
      servicePid = undefined;
    }
    // The locks of Litestream caused no 503.
    const statuses = new Set(log.flatMap(({ response }) => response?.status ?? []));
    assert.deepEqual([...statuses].sort(), [200, 400, 401, 412]);
    const restored = await restore();
    assert.deepEqual(await faultsIn(`sqlite:${restored}`, log), []);
    const check = await sqlite.sql(restored, 'PRAGMA integrity_check');
    assert.deepEqual(check, [{ integrity_check: 'ok' }]);
  });

/** Writes the script of docs/operate/backup.md. @returns its path */
function startScript(): string {
  const script = join(folder, 'start.sh');
  const text = `#!/bin/sh
    rm -rf '${folder}/.plants.db-litestream'
    exec '${litestream}' replicate -config '${configFile}' -exec "'${process.execPath}' '${PROGRAM}' $*"`;
  writeFileSync(script, text, { mode: 0o700 });
  return script;
}

/** Restores the copy as a store. @returns its path */
async function restore(): Promise<string> {
  const restored = join(folder, `restored-${++restores}.db`);
  await promisify(execFile)(litestream!, ['restore', '-config', configFile, '-o', restored, path]);
  return restored;
}

/** Counts, in the output of Litestream, the restarts of the log of which a part was copied. */
function copiedRestarts(lines: string[]): number {
  const segment = /msg="wal segment written".* position=(\w+\/\w+):\d+/;
  return new Set(lines.map(line => segment.exec(line)?.[1]).filter(Boolean)).size;
}

/** @returns undefined when npm has no Litestream for this platform */
function programOfPackage(): string | undefined {
  const platform = `${process.platform}-${process.arch}`;
  if (platform === 'linux-x64')
    return createRequire(import.meta.url).resolve(`@flydotio/litestream-${platform}/litestream`);
  console.log(`Not tested here: npm has no Litestream for ${platform}.`);
  return undefined;
}
