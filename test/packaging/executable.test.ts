import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import packageJson from '../../package.json' with { type: 'json' };
import { bundleProgram } from '../../packaging/program-bundle.ts';
import { PAGE_SCRIPT, PAGE_STYLE } from '../../src/pages/docs/docs-page.ts';
import { assertConsoleFiles } from '../harness/console-files.ts';
import { assertNoDebugger } from '../harness/debugger-signal.ts';
import { runProgram, type StartOptions, sendPlant, startServe } from '../harness/program.ts';
import { testFolder } from '../harness/test-folder.ts';

const BUILD = fileURLToPath(new URL('../../packaging/build-executable.ts', import.meta.url));
const folder = testFolder();
const executable = join(folder, 'built', 'plant-store');

before(() => build('built'));

function build(name: string): void {
  execFileSync(process.execPath, [BUILD, join(folder, name)], { stdio: 'pipe' });
}

/** Starts the program in an empty folder, without Node and without settings. */
function inNewFolder(name: string) {
  const cwd = join(folder, name);
  mkdirSync(cwd);
  return { executable, cwd, env: { PATH: '' } };
}

async function run(options: StartOptions, args: string[], env: Record<string, string> = {}): Promise<string> {
  const { exitCode, stdout, stderr } = await runProgram(args, {
    ...options,
    env: { ...options.env, ...env },
  });
  assert.equal(exitCode, 0, `${args.join(' ')}: ${stderr}`);
  return stdout;
}

test('the executable is one file, with the licences of its parts beside it, and no path of the build machine', async () => {
  assert.deepEqual(readdirSync(join(folder, 'built')), ['THIRD-PARTY-LICENSES.txt', 'plant-store']);
  const licences = readFileSync(join(folder, 'built', 'THIRD-PARTY-LICENSES.txt'), 'utf8');
  const { code, packages } = await bundleProgram();
  for (const dependency of Object.keys(packageJson.dependencies))
    assert.ok(packages.includes(`node_modules/${dependency}`), dependency);
  const names = packages.map(each => each.slice(each.lastIndexOf('node_modules/') + 'node_modules/'.length));
  for (const part of [...names, `Node.js ${process.versions.node}`, 'OpenSSL', 'V8', 'libuv'])
    assert.ok(licences.includes(part), part);
  const threads = [...code.matchAll(/data:text\/javascript;base64,([\w+/=]+)/g)];
  assert.ok(threads.length > 0);
  const texts = [code, ...threads.map(([, text]) => Buffer.from(text!, 'base64').toString())];
  for (const path of [fileURLToPath(new URL('../..', import.meta.url)), tmpdir()])
    assert.ok(texts.every(text => !text.includes(path)));
});

test('the executable is identical after a second build', () => {
  build('again');
  assert.ok(readFileSync(executable).equals(readFileSync(join(folder, 'again', 'plant-store'))));
});

test('the executable runs every command in an empty folder', async () => {
  const options = inNewFolder('commands');
  const { cwd } = options;
  // Node prints no warning, for example about a rejected code cache.
  const printed = { exitCode: 0, stdout: `${packageJson.version}\n`, stderr: '' };
  assert.deepEqual(await runProgram(['--version'], options), printed);
  assert.doesNotMatch(await run(options, ['serve', '--help']), /npx/);
  // It contains the driver of PostgreSQL.
  const remote = ['token', 'list', '--database', 'postgres://u@127.0.0.1:1/d'];
  assert.match((await runProgram(remote, options)).stderr, /no server is listening there/);
  const database = 'sqlite:plants.db';
  await using service = await startServe(database, [], options);
  assert.equal(await sendPlant(service.url, service.token, 9007199254740993n), 200);
  const page = await (await fetch(`${service.url}/docs`)).text();
  for (const part of [PAGE_STYLE, PAGE_SCRIPT]) assert.ok(page.includes(part));
  await assertConsoleFiles(service);

  const token = (await run(options, ['token', 'create', 'nursery', '--database', database])).trim();
  const environment = { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: token };
  await run(options, ['add', '--tag', 'tree', '--', '-9223372036854775808', 'Ficus'], environment);
  writeFileSync(join(cwd, 'plants.csv'), 'id,name,tag\n1,"a, b",c\n');
  writeFileSync(join(cwd, 'plants.jsonl.gz'), gzipSync('{"id":9223372036854775807,"name":"d","tag":""}\n'));
  await run(options, ['import', 'plants.csv', 'plants.jsonl.gz'], environment);

  const expected =
    'id,name,tag\n-9223372036854775808,Ficus,tree\n1,"a, b",c\n9007199254740993,Monstera,\n9223372036854775807,d,""\n';
  assert.equal(await run(options, ['export', '--database', database]), expected);
  assert.match(await run(options, ['show', '1', '--database', database]), /^plant 1\nrevision 1 /);
  assert.match(await run(options, ['token', 'list', '--database', database]), /^nursery .* valid/m);
  await run(options, ['backup', 'backup.db', '--database', database]);
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
  assert.equal(await run(options, ['export', '--database', 'sqlite:backup.db']), expected);
});

test('the executable opens no debugger on SIGUSR1', async () => {
  await assertNoDebugger('sqlite:plants.db', inNewFolder('signalled'));
});
