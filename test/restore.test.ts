import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { LoggedRequest } from './harness/client-log.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { runProgram, type ServeProcess, startServe } from './harness/program.ts';
import { RandomLoad } from './harness/random-load.ts';
import { SEED } from './harness/seeded-random.ts';
import { faultsIn } from './harness/stored-revisions.ts';

const root = mkdtempSync(join(tmpdir(), 'plant-store-restore-'));
const started: ServeProcess[] = [];
after(() => {
  // What a failed test has left behind would keep this process alive.
  for (const { child } of started) child.kill('SIGKILL');
  rmSync(root, { recursive: true });
});

async function serveOn({ database }: Store): Promise<ServeProcess> {
  const serve = await startServe(database);
  started.push(serve);
  return serve;
}

interface Store {
  folder: string;
  path: string;
  database: string;
}

function newPlace(): Store {
  const folder = mkdtempSync(join(root, 'test-'));
  mkdirSync(join(folder, 'data'));
  const path = join(folder, 'data', 'plant-store.db');
  return { folder, path, database: `sqlite:${path}` };
}

/** As docs/operate/backup.md has it: the log of the old store must not come to the new one. */
function putBack({ folder, path }: Store, backup: string): void {
  const commands = 'mv data lost && mkdir -p data && install -m 600 "$0" "$1"';
  execFileSync('sh', ['-c', commands, backup, path], { cwd: folder });
}

async function cli(args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runProgram(args);
  assert.equal(exitCode, 0, stderr);
  return stdout.trim();
}

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  test(`a backup made under load is put back after ${signal}: what was answered before it is there`, async () => {
    console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
    const store = newPlace();
    const backup = join(store.folder, 'backup.db');
    const first = await serveOn(store);
    const log: LoggedRequest[] = [];
    const load = new RandomLoad(first.url, first.token, log, SEED);
    await load.underWay();
    const begunAt = performance.now();
    await cli(['backup', backup, '--database', store.database]);
    // There is more behind the backup than in it.
    const before = log.length;
    while (log.length < 2 * before) await wait(10);
    if (signal === 'SIGTERM') await load.stop();
    await first.stop(signal);
    await load.stop();
    assert.deepEqual(await faultsIn(store.database, log), []);

    putBack(store, backup);
    const second = await serveOn(store);
    // What was answered 200 since then may be there or not; what was refused must not, whenever that was.
    const isOpen = ({ answer, answeredAt }: LoggedRequest): boolean =>
      answer?.status === 200 && answeredAt > begunAt;
    const cut = log.map(request => (isOpen(request) ? { ...request, answer: undefined } : request));
    assert.deepEqual(await faultsIn(store.database, cut), []);
    assert.notDeepEqual(await faultsIn(store.database, log), [], 'what came later is not there');

    const again: LoggedRequest[] = [];
    const client = new LoggingClient(second.url, first.token, again);
    for (const { plant } of log.filter(isOpen)) assert.equal((await client.send(plant)).answer?.status, 200);
    await client.close();
    await second.stop('SIGTERM');
    assert.deepEqual(await faultsIn(store.database, [...cut, ...again]), []);
    assert.ok(
      again.some(({ answer }) => answer?.outcome !== 'unchanged'),
      'some were gone',
    );
  });
}

test('tokens are as they were at the backup: one made since is gone, one revoked since is in force', async () => {
  const store = newPlace();
  const backup = join(store.folder, 'backup.db');
  const token = (...args: string[]): Promise<string> => cli(['token', ...args, '--database', store.database]);
  const first = await serveOn(store);
  const status = async (url: string, bearer: string): Promise<number | undefined> => {
    const client = new LoggingClient(url, bearer, []);
    const { answer } = await client.send({ id: 1n, name: 'oak' });
    await client.close();
    return answer?.status;
  };
  const kept = await token('create', 'kept');
  await token('create', 'revoked before');
  await token('revoke', 'revoked before');
  const revoked = await token('create', 'revoked since');
  await cli(['backup', backup, '--database', store.database]);
  await token('revoke', 'revoked since');
  const gone = await token('create', 'made since');
  assert.equal(await status(first.url, gone), 200);
  await first.stop('SIGTERM');

  putBack(store, backup);
  const second = await serveOn(store);
  assert.equal(await status(second.url, kept), 200);
  assert.equal(await status(second.url, gone), 401);
  assert.equal(await status(second.url, revoked), 200);
  // The numbers of these changes were given before, to others.
  const madeAgain = await token('create', 'made since');
  assert.equal(await status(second.url, madeAgain), 200);
  await token('revoke', 'revoked since');
  const sinceMs = performance.now();
  while ((await status(second.url, revoked)) === 200) {
    assert.ok(performance.now() - sinceMs < 30_000, 'a revocation does not take effect');
    await wait(50);
  }
  assert.equal(await status(second.url, madeAgain), 200);
  assert.match(await token('list'), /revoked before/);
  await second.stop('SIGTERM');
});
