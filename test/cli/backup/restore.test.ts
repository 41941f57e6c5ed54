import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { LoggedRequest } from '../../harness/client-log.ts';
import { LoggingClient } from '../../harness/logging-client.ts';
import { runProgram, sendPlant, startServe } from '../../harness/program.ts';
import { RandomLoad } from '../../harness/random-load.ts';
import { SEED } from '../../harness/seeded-random.ts';
import { faultsIn } from '../../harness/stored-revisions.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

const folder = testFolder();
const path = join(folder, 'data', 'plant-store.db');
const database = `sqlite:${path}`;
const backup = join(folder, 'backup.db');

async function cli(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runProgram([...args, '--database', database]);
  assert.equal(exitCode, 0, stderr);
  return stdout.trim();
}

test('a backup under load is restored after a kill, with the plants and tokens of that moment', async () => {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  mkdirSync(join(folder, 'data'));
  await using first = await startServe(database);
  await cli('token', 'create', 'revoked before');
  await cli('token', 'revoke', 'revoked before');
  const revoked = await cli('token', 'create', 'revoked since');
  const log: LoggedRequest[] = [];
  const load = new RandomLoad(first.url, first.token, log, SEED);
  await load.inFlight();
  const begunAt = performance.now();
  const [, counts] = /: (.* plants, .* revisions) and /.exec(await cli('backup', backup)) ?? [];
  // Send at least as many requests after the backup as before it.
  const before = log.length;
  while (log.length < 2 * before) await wait(10);
  await cli('token', 'revoke', 'revoked since');
  const gone = await cli('token', 'create', 'made since');
  await first.stop('SIGKILL');
  await load.stop();
  // The load has stored more since, maybe in the same millisecond.
  await cli('verify', '--against', `${backup}.seal`);
  const [, sealed] = /Z (.*) sha256/.exec(readFileSync(`${backup}.seal`, 'utf8')) ?? [];
  assert.equal(sealed?.replace('plants', 'plants,'), counts?.replaceAll(/(?<=\d),/g, ''));
  assert.deepEqual(await faultsIn(database, log), []);

  // The commands of docs/operate/backup.md. The old write-ahead log must not stay.
  const commands = 'mv data lost && mkdir -p data && install -m 600 "$0" "$1"';
  execFileSync('sh', ['-c', commands, backup, path], { cwd: folder });
  await using second = await startServe(database);
  // Plants stored since the backup may be missing. A rejected plant must never be stored.
  const isOpen = ({ response, respondedAt }: LoggedRequest): boolean =>
    response?.status === 200 && respondedAt > begunAt;
  const cut = log.map(request => (isOpen(request) ? { ...request, response: undefined } : request));
  assert.deepEqual(await faultsIn(database, cut), []);
  assert.notDeepEqual(await faultsIn(database, log), [], 'plants that came after the backup are missing');
  const again: LoggedRequest[] = [];
  const client = new LoggingClient(second.url, first.token, again);
  for (const { plant } of log.filter(isOpen)) assert.equal((await client.send(plant)).response?.status, 200);
  await client.close();
  assert.deepEqual(await faultsIn(database, [...cut, ...again]), []);

  assert.equal(await sendPlant(second.url, gone, -1n), 401);
  assert.equal(await sendPlant(second.url, revoked, -1n), 200);
  // Before the restore, other changes had the change numbers of the next two.
  const madeAgain = await cli('token', 'create', 'made since');
  assert.equal(await sendPlant(second.url, madeAgain, -1n), 200);
  await cli('token', 'revoke', 'revoked since');
  await until('the revocation takes effect', async () => (await sendPlant(second.url, revoked, -1n)) === 401);
  assert.equal(await sendPlant(second.url, madeAgain, -1n), 200);
  assert.match(await cli('token', 'list'), /revoked before/);
});
