import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { freePort } from '../../harness/free-port.ts';
import { mountNamespace } from '../../harness/mount-namespace.ts';
import { sendPlant, startServe } from '../../harness/program.ts';
import { scrape } from '../../harness/scrape.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

/** Mounts a FUSE file system over the folder $0. No program reads its requests, so each hangs. */
const HANG_UNTIL_INPUT_ENDS = `exec 3<>/dev/fuse &&
  mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 hanging "$0" && echo mounted && cat; umount -l "$0"`;

test('while the file system of the store hangs, /readyz and /metrics respond', {
  timeout: 60_000,
}, async () => {
  const inNamespace = mountNamespace('a hanging file system');
  if (inNamespace === undefined) return;
  const folder = testFolder();
  const opsUrl = `http://127.0.0.1:${await freePort()}`;
  const options = { prefix: inNamespace };
  await using service = await startServe(
    `sqlite:${folder}/plants.db`,
    ['--ops', new URL(opsUrl).host],
    options,
  );
  assert.equal(await sendPlant(service.url, service.token, 1n), 200);
  const isReady = async (): Promise<boolean> => (await fetch(`${opsUrl}/readyz`)).status === 200;
  assert.ok(await isReady());
  const walBytes = async () => (await scrape(opsUrl)).values.get('plant_store_wal_bytes');
  const before = await walBytes();
  assert.ok(before! > 0);

  const inService = ['--target', `${service.child.pid}`, '--user', '--mount', '--preserve-credentials'];
  const hanging = spawn('nsenter', [...inService, 'sh', '-c', HANG_UNTIL_INPUT_ENDS, folder]);
  using ended = new DisposableStack();
  ended.defer(() => hanging.stdin.end());
  const [mounted] = await Promise.race([once(hanging.stdout, 'data'), once(hanging, 'close')]);
  if (String(mounted) !== 'mounted\n') {
    console.error('NOT TESTED HERE: a hanging file system needs /dev/fuse');
    return;
  }
  // More than the threads of Node's pool.
  for (let count = 0; count < 5; count++) assert.equal(await walBytes(), before);
  await isReady();
  const ofThread = (name: string): string[] =>
    globSync(`/proc/${service.child.pid}/task/*/${name}`).map(file => readFileSync(file, 'utf8'));
  const waitsIn = ofThread('wchan');
  const hangs = ofThread('comm').filter(
    (comm, index) => /^libuv/.test(comm) && /fuse|d_alloc/.test(waitsIn[index]!),
  );
  assert.ok(hangs.length <= 1, `${hangs.length} threads of the pool hang`);

  ended.dispose();
  await once(hanging, 'close');
  await until('the service is ready again', isReady);
  assert.equal(await sendPlant(service.url, service.token, 2n), 200);
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
});
