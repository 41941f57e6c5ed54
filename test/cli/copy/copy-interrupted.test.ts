import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import {
  copiedRevisions,
  copy,
  equalDigest,
  fillStore,
  manyPlants,
  rowsOf,
} from '../../harness/copied-stores.ts';
import { LoggingClient } from '../../harness/logging-client.ts';
import { openReader } from '../../harness/open-store.ts';
import { startProgram } from '../../harness/program.ts';
import { startTestService } from '../../harness/running-service.ts';
import { postgresUnderTest, sqliteUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const postgres = await postgresUnderTest();
const sqlite = sqliteUnderTest();
/** Enough plants to interrupt a copy twice. */
const PLANTS = 40_000;

const REST = 'the copied rows are stored; run the same command again to copy the rest';

async function count(database: string): Promise<number> {
  await using reader = await openReader(database).catch(() => undefined);
  return (await reader?.size())?.revisions ?? 0;
}

test('an interrupted copy continues when it is run again', async () => {
  const [source, target] = [await sqlite.newDatabase(), await postgres.newDatabase()];
  await fillStore(source, manyPlants(PLANTS));
  /** Starts a copy and stops it after the first rows. */
  const stopInTheMiddle = async (
    stop: (child: ChildProcess) => unknown,
  ): Promise<[exitCode: number | null, stderr: string]> => {
    const before = await count(target);
    const child = startProgram(['copy', '--from', source, '--to', target]);
    let stderr = '';
    child.stderr!.setEncoding('utf8').on('data', text => (stderr += text));
    child.stdout!.resume();
    const ended = once(child, 'close');
    await until('rows are copied', async () => child.exitCode !== null || (await count(target)) > before);
    await stop(child);
    const [code] = await ended;
    return [code, stderr];
  };
  const assertInTheMiddle = async (): Promise<number> => {
    const stored = await count(target);
    assert.ok(stored > 0 && stored < PLANTS, `${stored} of ${PLANTS}`);
    return stored;
  };

  assert.deepEqual(await stopInTheMiddle(child => child.kill('SIGINT')), [
    130,
    `plant-store: stopped; ${REST}\n`,
  ]);
  await assertInTheMiddle();
  const [code, stderr] = await stopInTheMiddle(() => postgres.server.kill());
  await postgres.server.startAgain();
  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`^plant-store: [^\n]+; ${REST}\n$`));
  assert.ok(stderr.includes('--to: '), stderr);

  const stored = await assertInTheMiddle();
  const last = await copy(source, target);
  assert.equal(copiedRevisions(last), PLANTS - stored);
  equalDigest(last);
  assert.deepEqual(await rowsOf(target), await rowsOf(source));
});

test('a copy works while a service writes to the source, and a second copy completes it', async () => {
  const [source, target] = [await sqlite.newDatabase(), await postgres.newDatabase()];
  const { valid } = await fillStore(source, manyPlants(10_000));
  const service = await startTestService({ database: source });
  let sent = 0;
  let isOver = false;
  const sending = Array.from({ length: 4 }, async () => {
    const client = new LoggingClient(service.url, valid, []);
    while (!isOver) {
      // Ids between, after and equal to those of the stored plants.
      const { response } = await client.send({ id: BigInt(sent++ * 7), name: `sent ${sent}` });
      assert.equal(response?.status, 200);
    }
    await client.close();
  });
  const first = await copy(source, target);
  isOver = true;
  await Promise.all(sending);
  await service[Symbol.asyncDispose]();
  assert.equal(first.exitCode, 1, first.stdout);
  assert.match(first.stdout, /^not equal$/m);
  assert.match(
    first.stderr,
    /^plant-store: the source has [1-9][0-9,]* revisions? .* that were stored after the copy; stop the service that uses the source, then run the same command again to copy the rest\n$/,
  );
  const last = await copy(source, target);
  equalDigest(last);
  assert.ok(copiedRevisions(last) > 0);
  assert.equal(copiedRevisions(first) + copiedRevisions(last), await count(source), 'each was copied once');
  assert.deepEqual(await rowsOf(target), await rowsOf(source));
});
