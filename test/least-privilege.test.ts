import assert from 'node:assert/strict';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { newPlantJson } from '../src/contract/plant.ts';
import { OWNER_PASSWORD, PostgresServer } from './harness/postgres-server.ts';
import { runProgram, type ServeProcess, startServe } from './harness/program.ts';
import { until } from './harness/until.ts';

/** What a thread of the service could do: true, or the code of the error. */
type Attempts = Record<string, true | string>;

const DENIED = 'ERR_ACCESS_DENIED';

let folder: string;
let data: string;
const started: ServeProcess[] = [];
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'plant-store-privilege-'));
  data = join(folder, 'data');
  mkdirSync(data);
  writeFileSync(join(folder, 'secret'), 'secret');
  // What somebody would try who has got code into the process. Node runs it first in the process and in each thread.
  writeFileSync(
    join(data, 'intruder.mjs'),
    `import { spawnSync } from 'node:child_process';
     import fs from 'node:fs';
     import inspector from 'node:inspector';
     import { threadId } from 'node:worker_threads';
     const outside = ${JSON.stringify(folder)};
     const attempts = {
       'read beside the store': () => fs.readFileSync(outside + '/secret'),
       'read the password file of the system': () => fs.readFileSync('/etc/passwd'),
       'read the sources beside the program': () => fs.readFileSync(${JSON.stringify(join(import.meta.dirname, 'program.ts'))}),
       'list the folder above': () => fs.readdirSync(outside),
       'write beside the store': () => fs.writeFileSync(outside + '/written', 'x'),
       'write into the program': () => fs.appendFileSync(${JSON.stringify(join(import.meta.dirname, '../src/cli/main.ts'))}, ''),
       'delete beside the store': () => fs.rmSync(outside + '/deleted-' + threadId, { force: true }),
       'start a program': () => { const { error } = spawnSync('true'); if (error) throw error; },
       'load native code': () => process.dlopen({ exports: {} }, '/nowhere.node'),
       'open the inspector': () => { inspector.open(0, '127.0.0.1'); inspector.close(); },
     };
     const outcomes = {};
     for (const [what, attempt] of Object.entries(attempts)) {
       try { attempt(); outcomes[what] = true; } catch (error) { outcomes[what] = error.code; }
     }
     const kind = process.permission === undefined ? 'free' : 'restricted';
     fs.writeFileSync(${JSON.stringify(data)} + '/' + kind + '-' + threadId + '.json', JSON.stringify(outcomes));`,
  );
});
after(() => {
  // What a failed test has left behind would keep this process alive.
  for (const { child } of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

/** In the folder of the store, since Node lets threads read the one that the process was started in. */
async function serve(
  database: string,
  env: Record<string, string> = {},
  args: string[] = [],
): Promise<ServeProcess> {
  const each = await startServe(database, ['--least-privilege', ...args], { env, cwd: data });
  started.push(each);
  return each;
}

/** What each thread of a service could do; all of its threads have tried when it takes plants. */
function attemptsOf(kind: 'free' | 'restricted'): Attempts[] {
  return readdirSync(data)
    .filter(file => file.startsWith(`${kind}-`))
    .map(file => JSON.parse(readFileSync(join(data, file), 'utf8')));
}

async function send({ url, token }: ServeProcess, id: bigint): Promise<number> {
  const response = await fetch(`${url}/plants`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: newPlantJson({ id, name: 'A' }),
  });
  return response.status;
}

suite('serve --least-privilege', () => {
  test('keeps plants, and neither the process nor its threads can do what they need not', async () => {
    const database = `sqlite:${join(data, 'plants.db')}`;
    const intruded = await serve(database, {
      NODE_OPTIONS: `--import=${pathToFileURL(join(data, 'intruder.mjs'))}`,
    });
    assert.equal(await send(intruded, 1n), 200);
    // The writer's thread, and the one that copies the log.
    await until('the threads have tried', () => attemptsOf('restricted').length >= 3);
    const { exitCode, stderr } = await intruded.stop('SIGTERM');
    assert.equal(exitCode, 0);
    assert.doesNotMatch(stderr, /warning/i);
    for (const attempts of attemptsOf('restricted')) {
      const { 'load native code': native, ...others } = attempts;
      assert.equal(native, 'ERR_DLOPEN_DISABLED');
      for (const [what, outcome] of Object.entries(others)) assert.equal(outcome, DENIED, what);
    }
    const shown = await runProgram(['show', '1', '--database', database]);
    assert.equal(shown.exitCode, 0, shown.stderr);
    // Before the process was replaced it could: otherwise all of this would prove nothing.
    assert.equal(attemptsOf('free').length, 1);
    for (const [what, outcome] of Object.entries(attemptsOf('free')[0]!))
      if (what !== 'load native code') assert.equal(outcome, true, what);
  });

  test('makes the folder, and starts again on what is there, also by a link to the folder', async () => {
    const store = join(folder, 'new', 'the "store" \\ of plants');
    const first = await serve(`sqlite:${join(store, 'plants.db')}`);
    assert.equal(await send(first, 1n), 200);
    await first.stop('SIGKILL');
    symlinkSync(store, join(folder, 'linked'));
    const again = await serve(`sqlite:${join(folder, 'linked', 'plants.db')}`);
    assert.equal(await send({ ...again, token: first.token }, 2n), 200);
    assert.equal((await again.stop('SIGTERM')).exitCode, 0);
  });

  test('takes plants by a link to a file in another folder', async () => {
    const elsewhere = join(folder, 'elsewhere');
    const first = await serve(`sqlite:${join(elsewhere, 'plants.db')}`);
    await first.stop('SIGTERM');
    symlinkSync(join(elsewhere, 'plants.db'), join(folder, 'link.db'));
    const linked = await serve(`sqlite:${join(folder, 'link.db')}`);
    assert.equal(await send({ ...linked, token: first.token }, 1n), 200);
    assert.equal((await linked.stop('SIGTERM')).exitCode, 0);
  });

  test('refuses a store that cannot be made, in a line', async () => {
    writeFileSync(join(folder, 'file'), '');
    const database = `sqlite:${join(folder, 'file', 'plants.db')}`;
    await assert.rejects(serve(database), ({ message }: Error) => {
      assert.match(
        message,
        /^serve ended with 1: plant-store: the store at .* cannot be opened \(.*\); is the folder/,
      );
      assert.doesNotMatch(message, /\n./);
      return true;
    });
  });

  test('reads the files of passwords and certificates that the address of PostgreSQL leads to', async () => {
    await using server = await PostgresServer.start();
    const { pathname } = new URL(await server.createDatabase());
    const passwordFile = join(folder, 'pgpass');
    writeFileSync(passwordFile, `127.0.0.1:${server.port}:*:postgres:${OWNER_PASSWORD}\n`);
    chmodSync(passwordFile, 0o600);
    const pem = join(import.meta.dirname, 'postgres-tls');
    const parameters = new URLSearchParams({
      sslrootcert: join(pem, 'ca.pem'),
      sslcert: join(pem, 'client.pem'),
      sslkey: join(pem, 'client-key.pem'),
    });
    const address = `postgres://postgres@127.0.0.1:${server.port}${pathname}?${parameters}`;
    const byFile = await serve(address, { PGPASSFILE: passwordFile });
    assert.equal(await send(byFile, 1n), 200);
    assert.equal((await byFile.stop('SIGTERM')).exitCode, 0);

    const secret = join(folder, 'password');
    writeFileSync(secret, OWNER_PASSWORD);
    const byOption = await serve(address, {}, ['--database-password-file', secret]);
    assert.equal(await send({ ...byOption, token: byFile.token }, 2n), 200);
    assert.equal((await byOption.stop('SIGTERM')).exitCode, 0);
  });
});
