import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { NewPlant } from '../src/contract/plant.ts';
import { newPlantJson } from '../src/contract/plant.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { OWNER_PASSWORD } from './harness/postgres-server.ts';
import { type Finished, runProgram, type ServeProcess, startServe } from './harness/program.ts';
import { until } from './harness/until.ts';
import { openStore, postgresUnderTest } from './store-under-test.ts';

/** Real rows: species of street trees, in the order of their ids. */
const TREES = fileURLToPath(new URL('../examples/us-trees.csv', import.meta.url));
/** A change of a token takes effect within this, on every instance. */
const EFFECT_WITHIN_MS = 5_000;

const under = await postgresUnderTest();
const folder = await mkdtemp(join(tmpdir(), 'plant-store-postgres-cli-'));
const started: ChildProcess[] = [];
after(async () => {
  // What a failed test has left behind would keep this process alive.
  for (const child of started) child.kill('SIGKILL');
  await rm(folder, { recursive: true });
});

async function serveOn(database: string): Promise<ServeProcess> {
  const serve = await startServe(database);
  started.push(serve.child);
  return serve;
}

/** Runs a command on this store; the password is in its address, and in nothing that it says. */
async function run(database: string, ...args: string[]): Promise<Finished> {
  const finished = await runProgram([...args, '--database', database]);
  for (const text of [finished.stdout, finished.stderr]) {
    for (const password of [OWNER_PASSWORD, encodeURIComponent(OWNER_PASSWORD)]) {
      assert.ok(!text.includes(password), text);
    }
  }
  return finished;
}

/** Settles when this service accepts the token, or no longer does; in the time that is promised. */
async function untilAccepted({ url }: ServeProcess, token: string, isAccepted: boolean): Promise<void> {
  const client = new LoggingClient(url, token, []);
  const since = performance.now();
  const plant = { id: 1n, name: 'asked' };
  const expected = isAccepted ? 200 : 401;
  while ((await client.send(plant)).answer?.status !== expected) {
    assert.ok(performance.now() - since < EFFECT_WITHIN_MS, `it takes longer than ${EFFECT_WITHIN_MS} ms`);
    await wait(20);
  }
  await client.close();
}

suite('the command line on PostgreSQL', { concurrency: 2 }, () => {
  test('imports real rows through a service, and exports what went in', async () => {
    const database = await under.newDatabase();
    const serve = await serveOn(database);
    const importTrees = (file: string): Promise<Finished> =>
      runProgram(['import', file, '--url', serve.url, '--token', serve.token], { cwd: folder });
    const first = await importTrees(TREES);
    assert.deepEqual([first.exitCode, first.stderr], [0, '']);
    assert.match(first.stdout, /^2,257 rows: 2,257 created, 0 unchanged, 0 revised, 0 rejected/);
    assert.match((await importTrees(TREES)).stdout, /^2,257 rows: 0 created, 2,257 unchanged/);

    const csv = await run(database, 'export');
    assert.equal(csv.exitCode, 0);
    assert.equal(csv.stdout, await readFile(TREES, 'utf8'));
    assert.equal(csv.stderr, '2,257 plants exported\n');

    // What was exported is imported elsewhere, and is the same again.
    const jsonLines = await run(database, 'export', '--format', 'jsonl');
    await writeFile(join(folder, 'trees.jsonl'), jsonLines.stdout);
    const other = await under.newDatabase();
    const otherServe = await serveOn(other);
    await runProgram(['import', 'trees.jsonl', '--url', otherServe.url, '--token', otherServe.token], {
      cwd: folder,
    });
    assert.equal((await run(other, 'export', '--format', 'jsonl')).stdout, jsonLines.stdout);
    for (const each of [serve, otherServe]) assert.equal((await each.stop('SIGTERM')).exitCode, 0);
  });

  test('shows and exports any plant exactly, with its revisions and who sent them', async () => {
    const database = await under.newDatabase();
    const plants: NewPlant[] = [
      { id: -(2n ** 63n), name: 'smallest', tag: '' },
      { id: 1n, name: 'line\nbreak', tag: 'carriage\r\nreturn' },
      { id: 2n, name: '' },
      { id: 2n ** 53n, name: 'ceiba 🌳', tag: 'é' },
      { id: 2n ** 53n + 1n, name: 'its "neighbour", \\N' },
      { id: 2n ** 63n - 1n, name: 'largest' },
    ];
    {
      await using engine = await openStore(database);
      await engine.createToken({
        hash: '0'.repeat(64),
        label: 'nursery, east',
        createdAt: 0,
        expiresAt: null,
      });
      await engine.commit([
        ...plants.map(plant => ({ plant, recordedBy: 1 })),
        { plant: { id: 2n, name: 'named', tag: '' }, recordedBy: 7 },
      ]);
    }
    const lines = (await run(database, 'export', '--format', 'jsonl')).stdout;
    const latest = plants.map(plant => (plant.id === 2n ? { id: 2n, name: 'named', tag: '' } : plant));
    assert.equal(lines, latest.map(plant => `${newPlantJson(plant)}\n`).join(''));
    const history = (await run(database, 'export', '--revisions')).stdout;
    assert.match(history, /^2,1,"",,[^,]+,"nursery, east"\n2,2,named,"",[^,]+,7$/m);

    const shown = await run(database, 'show', '9007199254740993');
    assert.equal(shown.exitCode, 0);
    assert.match(
      shown.stdout,
      /^plant 9007199254740993\nrevision 1 {2}\S+ {2}by nursery, east {2}{"name":"its \\"neighbour\\", \\\\N"}\n$/,
    );
    const missing = await run(database, 'show', '3');
    assert.deepEqual([missing.exitCode, missing.stdout], [1, '']);
    assert.match(
      missing.stderr,
      /^plant-store: there is no plant with the id 3 in postgres:\/\/postgres@[^\n]+\n$/,
    );
  });

  test('makes, lists and revokes tokens, and two running services follow within 5 s', async () => {
    const database = await under.newDatabase();
    const one = await serveOn(database);
    const other = await serveOn(database);
    assert.match(one.token, /^plant_/);
    assert.equal(other.token, '', 'the first one is made once');
    await Promise.all([one, other].map(serve => untilAccepted(serve, one.token, true)));

    const created = await run(database, 'token', 'create', 'field app', '--expires', '90d');
    assert.equal(created.exitCode, 0);
    assert.match(created.stderr, /^token "field app" is in force in postgres:\/\/postgres@\S+\n$/);
    const token = created.stdout.trim();
    await Promise.all([one, other].map(serve => untilAccepted(serve, token, true)));
    const again = await run(database, 'token', 'create', 'field app');
    assert.deepEqual([again.exitCode, again.stdout], [1, '']);
    assert.match(again.stderr, /there is a token with the label "field app" already/);

    const revoked = await run(database, 'token', 'revoke', 'field app');
    assert.equal(revoked.exitCode, 0);
    await Promise.all([one, other].map(serve => untilAccepted(serve, token, false)));
    await Promise.all([one, other].map(serve => untilAccepted(serve, one.token, true)));
    assert.equal((await run(database, 'token', 'revoke', 'none')).exitCode, 1);

    for (const serve of [one, other]) assert.equal((await serve.stop('SIGTERM')).exitCode, 0);
    const listed = await run(database, 'token', 'list');
    const today = new Date().toISOString().slice(0, 10);
    const states = listed.stdout
      .trimEnd()
      .split('\n')
      .map(line => line.split(/ {2,}/))
      .map(([label, , , state, lastUsed]) => [label, state, lastUsed]);
    assert.deepEqual(states.slice(1), [
      ['first', 'in force', today],
      ['field app', `revoked ${today}`, today],
    ]);
    assert.ok(!listed.stdout.includes(token.slice('plant_'.length)));
  });

  test('makes a store with token create, and with no other command', async () => {
    const database = await under.newDatabase();
    for (const args of [['token', 'list'], ['token', 'revoke', 'first'], ['show', '1'], ['export']]) {
      const { exitCode, stdout, stderr } = await run(database, ...args);
      assert.deepEqual([exitCode, stdout], [1, '']);
      assert.match(stderr, /^plant-store: [^\n]*there is no plant store in this database[^\n]*\n$/);
    }
    const created = await run(database, 'token', 'create', 'nursery');
    assert.match(created.stdout, /^plant_\w+\n$/);
    assert.match(
      created.stderr,
      /^there was no store at postgres:\/\/postgres@\S+ yet; it is made now\ntoken "nursery" is in force in \S+\n$/,
    );
    assert.match((await run(database, 'token', 'list')).stdout, /^nursery /m);
    assert.equal((await run(database, 'export')).stdout, 'id,name,tag\n');
  });

  test('leaves no connection behind', async () => {
    const database = await under.newDatabase();
    const serve = await serveOn(database);
    await untilAccepted(serve, serve.token, true);
    await run(database, 'token', 'list');
    await run(database, 'export');
    assert.equal((await serve.stop('SIGTERM')).exitCode, 0);
    const name = new URL(database).pathname.slice(1);
    await until('the connections are gone', async () => {
      const rows = await under.server.query(`SELECT pid FROM pg_stat_activity WHERE datname = '${name}'`);
      return rows.length === 0;
    });
  });
});
