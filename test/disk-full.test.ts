import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { LoggedRequest } from './harness/client-log.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { PROGRAM } from './harness/program.ts';
import { RandomLoad } from './harness/random-load.ts';
import { SEED } from './harness/seeded-random.ts';
import { readGreeting, type ServeGreeting } from './harness/serve-greeting.ts';
import { faultsIn } from './harness/stored-revisions.ts';
import { until } from './harness/until.ts';

const folder = mkdtempSync(join(tmpdir(), 'plant-store-disk-'));
const started: ChildProcess[] = [];
after(() => {
  // What a failed test has left behind would keep this process alive.
  for (const child of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

interface Started extends ServeGreeting {
  child: ChildProcess;
}

/** A service whose room for files can be taken away and given back while it runs. */
interface ConfinedService extends Started {
  /** Takes the room away, and settles when there is none. */
  fill(log: LoggedRequest[]): Promise<void>;
  makeRoom(): void;
  /** Where a file of the service is found from here. */
  seenFromHere(path: string): string;
}

/** Starts `serve` by a command that confines itself and then becomes what the rest of its arguments names. */
async function serveBy(command: string[], database: string): Promise<Started> {
  const serve = [process.execPath, PROGRAM, 'serve', '--database', `sqlite:${database}`];
  const [file = '', ...args] = [...command, ...serve, '--listen', '127.0.0.1:0', '--ops', '127.0.0.1:0'];
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  started.push(child);
  return { child, ...(await readGreeting(child)) };
}

/** A new user namespace lets a process mount a file system for itself alone without being root. */
const IN_OWN_NAMESPACE = ['unshare', '--user', '--map-root-user', '--mount'];
const MOUNT_AND_RUN = 'mount -t tmpfs -o size=24m tmpfs "$0" && exec "$@"';

/** The service gets a small file system that it alone sees, and that goes when it ends: ENOSPC, as on a real disk. */
async function serveOnSmallDisk(database: string): Promise<ConfinedService> {
  const disk = dirname(database);
  const service = await serveBy([...IN_OWN_NAMESPACE, 'sh', '-c', MOUNT_AND_RUN, disk], database);
  const seenFromHere = (path: string): string => join(`/proc/${service.child.pid}/root`, path);
  const ballast = seenFromHere(join(disk, 'ballast'));
  return {
    ...service,
    fill: () => assert.rejects(writeFile(ballast, Buffer.alloc(32 * 1024 * 1024)), { code: 'ENOSPC' }),
    makeRoom: () => rmSync(ballast),
    seenFromHere,
  };
}

const LIMIT_BYTES = 2 * 1024 * 1024;
/** `ulimit -f` counts half KiB (POSIX). */
const LIMIT_AND_RUN = `ulimit -S -f ${LIMIT_BYTES / 512} && exec "$0" "$@"`;

/**
 * No file of the service can grow beyond a limit, which binds every user on every POSIX system. Room is made from
 * outside: this process, which has no such limit, moves the write-ahead log into the database.
 */
async function serveWithSmallFiles(database: string): Promise<ConfinedService> {
  const service = await serveBy(['sh', '-c', LIMIT_AND_RUN], database);
  return {
    ...service,
    fill: async log => {
      const client = new LoggingClient(service.url, service.token, log);
      const refusals: LoggedRequest[] = [];
      for (let id = -1n; refusals.length < 5; id--) {
        assert.ok(id > -200n, 'ten times the limit was stored');
        const sent = await client.send({ id, name: 'x'.repeat(100_000) });
        if (sent.answer?.status !== 200) refusals.push(sent);
      }
      await client.close();
    },
    makeRoom: () => {
      const outside = new DatabaseSync(database);
      outside.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      outside.close();
    },
    seenFromHere: path => path,
  };
}

/**
 * What is stored, read from a copy: SQLite resolves the path through /proc to one that is not here. The service is
 * halted meanwhile, so that the two files belong together.
 */
async function faultsInCopy(
  service: ConfinedService,
  database: string,
  log: readonly LoggedRequest[],
): Promise<string[]> {
  const copy = join(mkdtempSync(join(folder, 'copy-')), 'plants.db');
  service.child.kill('SIGSTOP');
  await wait(50);
  for (const suffix of ['', '-wal']) {
    const file = service.seenFromHere(database + suffix);
    if (existsSync(file)) copyFileSync(file, copy + suffix);
  }
  service.child.kill('SIGCONT');
  return await faultsIn(`sqlite:${copy}`, log);
}

async function testFullDisk(confine: (database: string) => Promise<ConfinedService>): Promise<void> {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = join(mkdtempSync(join(folder, 'disk-')), 'plants.db');
  const service = await confine(database);
  const log: LoggedRequest[] = [];
  const load = new RandomLoad(service.url, service.token, log, SEED);
  await load.underWay();
  await service.fill(log);
  const failed = (): LoggedRequest[] =>
    log.filter(({ answer }) => answer === undefined || answer.status >= 500);
  await until('200 plants are not confirmed', () => failed().length >= 200);
  await load.stop();

  for (const { answer } of failed()) {
    assert.equal(answer?.status, 503);
    assert.match(answer.retryAfter ?? '', /^[1-9][0-9]*$/);
    assert.equal(JSON.parse(answer.body).error, 50302);
  }
  assert.deepEqual(await faultsInCopy(service, database, log), [], 'while the disk is full');

  const inDoubt = failed().slice(-20);
  service.makeRoom();
  const client = new LoggingClient(service.url, service.token, log);
  await until('it finds out that there is room again', async () => {
    return (await client.send(inDoubt[0]!.plant)).answer?.status === 200;
  });
  for (const { plant } of inDoubt) assert.equal((await client.send(plant)).answer?.status, 200);
  await client.close();
  assert.deepEqual(await faultsInCopy(service, database, log), [], 'when there was room again');

  service.child.kill('SIGTERM');
  const [exitCode] = await once(service.child, 'exit');
  assert.equal(exitCode, 0);
}

test('files that cannot grow, and room again: 503 in between, nothing lost, nothing refused stored', () =>
  testFullDisk(serveWithSmallFiles));

test('a full disk, and room again: 503 in between, nothing lost, nothing refused stored', async () => {
  const namespaces = spawnSync(IN_OWN_NAMESPACE[0]!, [...IN_OWN_NAMESPACE.slice(1), 'true']);
  if (namespaces.status === 0) return testFullDisk(serveOnSmallDisk);
  console.error(
    'NOT TESTED HERE: ENOSPC needs user namespaces, which this system does not allow; files that cannot grow were',
  );
});

test('a log that cannot be written holds up neither plants nor the end', async () => {
  const log = join(folder, 'full.log');
  writeFileSync(log, Buffer.alloc(LIMIT_BYTES));
  const command = ['sh', '-c', `${LIMIT_AND_RUN} >>'${log}'`];
  const { child, url, token } = await serveBy(command, join(folder, 'logged.db'));
  const client = new LoggingClient(url, token, []);
  const { answer } = await client.send({ id: 1n, name: 'though nobody can write about it' });
  assert.equal(answer?.status, 200, 'the service does not answer');
  await client.close();
  child.kill('SIGTERM');
  const [exitCode] = await once(child, 'exit');
  assert.equal(exitCode, 0);
});
