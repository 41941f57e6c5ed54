import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { openCommandStore } from '../harness/open-store.ts';
import {
  type Finished,
  firstTokenOf,
  ON_TERMINAL,
  sendPlant,
  startProgram,
  startServe,
} from '../harness/program.ts';
import { HAS_TERMINAL } from '../harness/terminal.ts';
import { testFolder } from '../harness/test-folder.ts';
import { until } from '../harness/until.ts';

const folder = testFolder();
const NO_TOKEN = /^The store has no token; create one with: npx plant-store token create LABEL --database /m;

/** Starts a service on a new store and stops it after `use`. @returns its output */
async function firstStart(
  database: string,
  prefix?: string[],
  use?: (url: string, token: string) => Promise<void>,
): Promise<Finished> {
  await using serve = await startServe(database, [], { prefix });
  await use?.(serve.url, serve.token);
  return await serve.stop('SIGTERM');
}

test('without a terminal, the first token goes only to a new file that only its owner reads', async () => {
  const path = join(folder, "it's new", 'plants.db');
  mkdirSync(join(path, '..'));
  const { stdout, stderr } = await firstStart(`sqlite:${path}`, undefined, async url => {
    const token = readFileSync(`${path}-first-token`, 'utf8').trimEnd();
    assert.equal(await sendPlant(url, token, 1n), 200);
  });
  const file = `${path}-first-token`;
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.match(readFileSync(file, 'utf8'), /^plant_\w{36}\n$/);
  assert.doesNotMatch(stdout + stderr, /plant_\w{36}/);
  // The curl line reads the file, whatever the name of the folder is.
  const [, credential] = / -H "(Authorization: .*)" \\\n/.exec(stderr)!;
  const header = execFileSync('sh', ['-c', `printf %s "${credential}"`], { encoding: 'utf8' });
  assert.equal(`${header}\n`, `Authorization: Bearer ${readFileSync(file, 'utf8')}`);
});

test('a start that is killed before the store has the token, or before the file has its name', async () => {
  const path = join(folder, 'killed', 'plants.db');
  mkdirSync(join(path, '..'));
  const [database, file] = [`sqlite:${path}`, `${path}-first-token`];
  await (await openCommandStore(database)).close();
  const works = async (url: string) =>
    assert.equal(await sendPlant(url, readFileSync(file, 'utf8').trimEnd(), 1n), 200);
  // While the store is locked, the token cannot be stored.
  using writer = new DatabaseSync(path);
  writer.exec('BEGIN IMMEDIATE');
  const killed = startProgram(['serve', '--database', database, '--listen', ':0', '--ops', ':0']);
  const ended = once(killed, 'close');
  await until('a token is saved', () =>
    readdirSync(dirname(path)).some(each => each.includes('first-token')),
  );
  killed.kill('SIGKILL');
  await ended;
  writer.exec('ROLLBACK');
  assert.match((await firstStart(database, undefined, works)).stderr, / first token is in the file /);
  renameSync(file, `${file}.partial`);
  assert.match((await firstStart(database, undefined, works)).stderr, / first token is in the file /);
  renameSync(file, `${file}.partial`);
  writer.exec('UPDATE token SET hash = 1');
  assert.doesNotMatch((await firstStart(database)).stderr, /first token/);
  assert.deepEqual(
    readdirSync(dirname(path)).filter(each => each.includes('first-token')),
    [],
  );
});

test('an existing file is not replaced, not even a link to nowhere, and then the store gets no token', async () => {
  const linked = join(folder, 'linked.db');
  symlinkSync(join(folder, 'elsewhere'), `${linked}-first-token`);
  assert.match((await firstStart(`sqlite:${linked}`)).stderr, NO_TOKEN);
  assert.ok(!existsSync(join(folder, 'elsewhere')));
});

if (HAS_TERMINAL)
  test('on a terminal, the first token is shown and not saved', async () => {
    const path = join(folder, 'terminal.db');
    const { stderr } = await firstStart(`sqlite:${path}`, ON_TERMINAL);
    const [, token] = /shown only now; save it:\s+(plant_\w{36})\s/.exec(stderr) ?? [];
    assert.ok(token !== undefined, stderr);
    // The command can be pasted, and it fits a terminal, as all other lines but those with a path.
    const [command = ''] = /^ {2}curl -i http:.*?'$/ms.exec(stderr.replaceAll('\r', '')) ?? [];
    assert.ok(command.includes(`-H 'Authorization: Bearer ${token}' \\\n`), stderr);
    assert.match(stderr, /^ {2}http:\/\/127\.0\.0\.1:\d+\/console\/#[\w-]{43}\r$/m);
    const lines = stderr.replaceAll('\r', '').split('\n');
    assert.deepEqual(
      lines.filter(line => line.length > 80 && !line.includes(path)),
      [],
    );
    // People read no JSON.
    assert.match(stderr, /^\d\d:\d\d:\d\d service started database=\S+ address=127\.0\.0\.1:\d+ /m);
    assert.ok(!stderr.includes('{"level"'), stderr);
    assert.equal(firstTokenOf(stderr), '');
    assert.ok(!existsSync(`${path}-first-token`));
  });
