import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { hashToken, makeToken } from '../src/auth/token.ts';
import { openReaderIfAny } from '../src/store/open-store.ts';
import {
  contentOf,
  copiedRevisions,
  copy,
  equalDigest,
  fillStore,
  manyPlants,
  rowsOf,
} from './copied-stores.ts';
import { startProgram } from './harness/program.ts';
import { SEED, seededRandom } from './harness/seeded-random.ts';
import { until } from './harness/until.ts';
import { startTestService } from './running-service.ts';
import { type EngineUnderTest, openTokens, postgresUnderTest, sqliteUnderTest } from './store-under-test.ts';

const postgres = await postgresUnderTest();
const sqlite = sqliteUnderTest();
const PAIRS: [EngineUnderTest, EngineUnderTest, NodeJS.Signals, exitCode: number][] = [
  [sqlite, postgres, 'SIGINT', 130],
  [postgres, sqlite, 'SIGTERM', 143],
];
/** Enough for a copy to be met in the middle. */
const PLANTS = 40_000;
const plants = manyPlants(PLANTS);

async function count(database: string): Promise<number> {
  const reader = await openReaderIfAny(database);
  const revisions = await reader?.countRevisions();
  await reader?.close();
  return revisions ?? 0;
}

function startCopy(
  from: string,
  to: string,
): { child: ChildProcess; ended: Promise<[number | null, string]> } {
  const child = startProgram(['copy', '--from', from, '--to', to]);
  let stderr = '';
  child.stderr!.setEncoding('utf8').on('data', text => (stderr += text));
  child.stdout!.resume();
  const ended = once(child, 'close').then(([exitCode]): [number | null, string] => [exitCode, stderr]);
  return { child, ended };
}

for (const [from, to, signal, exitCode] of PAIRS) {
  suite(`a copy from ${from.name} to ${to.name}`, () => {
    test('goes on after each kill -9, and adds what is missing, once', async context => {
      context.diagnostic(`seed ${SEED}`);
      const random = seededRandom(SEED);
      const [source, target] = [await from.newDatabase(), await to.newDatabase()];
      await fillStore(source, plants);
      let partly = 0;
      for (let kills = 0; kills < 6 && (await count(target)) < PLANTS; kills++) {
        const before = await count(target);
        const { child, ended } = startCopy(source, target);
        // Some anywhere, also before the store is made; most a while after the first row of this run.
        if (kills % 3 === 0) await wait(random(300));
        else await until('it copies', async () => child.exitCode !== null || (await count(target)) > before);
        await wait(random(60));
        child.kill('SIGKILL');
        await ended;
        const kept = await count(target);
        assert.ok(kept >= before);
        if (kept > 0 && kept < PLANTS) partly++;
      }
      assert.ok(partly >= 1, `${partly} kills met it in the middle`);
      const before = await count(target);
      const last = await copy(source, target);
      assert.equal(copiedRevisions(last), PLANTS - before);
      equalDigest(last);
      assert.deepEqual(await rowsOf(target), await rowsOf(source));
    });

    test(`ends in good order with ${signal}`, async () => {
      const [source, target] = [await from.newDatabase(), await to.newDatabase()];
      await fillStore(source, plants);
      const { child, ended } = startCopy(source, target);
      await until('it copies', async () => (await count(target)) > 0);
      child.kill(signal);
      assert.deepEqual(await ended, [
        exitCode,
        'plant-store: stopped; what was copied stays, and the same command goes on from there\n',
      ]);
      const kept = await count(target);
      assert.ok(kept > 0 && kept < PLANTS, `${kept}`);
      const rest = await copy(source, target);
      assert.equal(copiedRevisions(rest), PLANTS - kept);
      equalDigest(rest);
    });

    test('runs beside a service that writes to the source, and again when it is stopped', async () => {
      const [source, target] = [await from.newDatabase(), await to.newDatabase()];
      await fillStore(source, plants);
      const service = await startTestService({ database: source });
      const token = await addToken(service);
      let sent = 0;
      let isOver = false;
      const sending = Array.from({ length: 4 }, async () => {
        while (!isOver) {
          // Between, behind and over the plants that are there.
          await send(service.url, token, BigInt(sent++ * 7), `sent ${sent}`);
        }
      });
      let copied = 0;
      for (let run = 0; run < 2; run++) {
        const finished = await copy(source, target);
        copied += copiedRevisions(finished);
        if (finished.exitCode !== 0) {
          assert.match(finished.stdout, /^not equal$/m);
          assert.match(
            finished.stderr,
            /^plant-store: the source has taken .* since it was copied; stop the service on it, and run the same command again, which copies the rest\n$/,
          );
        }
      }
      isOver = true;
      await Promise.all(sending);
      await service[Symbol.asyncDispose]();
      assert.ok(sent > 100);
      const last = await copy(source, target);
      equalDigest(last);
      assert.equal(copied + copiedRevisions(last), await count(source), 'each revision was added once');
      assert.ok((await count(source)) > PLANTS);
      assert.equal(await contentOf(target), await contentOf(source));
    });
  });
}

async function addToken({ database }: { database: string }): Promise<string> {
  const token = makeToken();
  await using store = await openTokens(database);
  await store.createToken({
    hash: hashToken(token),
    label: 'sender',
    createdAt: Date.now(),
    expiresAt: null,
  });
  return token;
}

async function send(url: string, token: string, id: bigint, name: string): Promise<void> {
  const answer = await fetch(`${url}/plants`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: `{"id": ${id}, "name": "${name}"}`,
  });
  assert.equal(answer.status, 200, await answer.text());
}

test('a PostgreSQL that is killed fails the copy with one line, and the next one goes on', async () => {
  for (const [from, to] of PAIRS) {
    const [source, target] = [await from.newDatabase(), await to.newDatabase()];
    await fillStore(source, plants);
    const { ended } = startCopy(source, target);
    await until('it copies', async () => (await count(target)) > 0);
    await postgres.server.kill();
    const [exitCode, stderr] = await ended;
    await postgres.server.startAgain();
    assert.equal(exitCode, 1);
    assert.match(
      stderr,
      /^plant-store: [^\n]+; what was copied stays, and the same command goes on from there\n$/,
    );
    assert.ok(stderr.includes(from === postgres ? '--from: ' : '--to: '), stderr);
    equalDigest(await copy(source, target));
  }
});
