import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import packageJson from '../../package.json' with { type: 'json' };
import { bundleProgram, type ProgramBundle } from '../../packaging/program-bundle.ts';
import { PAGE_SCRIPT, PAGE_STYLE } from '../../src/docs-page/docs-page.ts';
import { assertConsoleFiles } from '../harness/console-files.ts';
import { assertNoDebugger } from '../harness/debugger-signal.ts';
import { PostgresServer } from '../harness/postgres-server.ts';
import { type Finished, runProgram, type ServeProcess, sendPlant, startServe } from '../harness/program.ts';
import { testFolder } from '../harness/test-folder.ts';

const BUILD = fileURLToPath(new URL('../../packaging/build-executable.ts', import.meta.url));
/** An environment without Node and without settings. */
const EMPTY_ENVIRONMENT = { PATH: '' };

const folder = testFolder();
const executable = join(folder, 'built', 'plant-store');

let bundle: ProgramBundle;

before(async () => {
  build('built');
  bundle = await bundleProgram();
});

function build(name: string): void {
  execFileSync(process.execPath, [BUILD, join(folder, name)], { stdio: 'pipe' });
}

function emptyFolder(name: string): string {
  const made = join(folder, name);
  mkdirSync(made);
  return made;
}

function serve(cwd: string, database: string): Promise<ServeProcess> {
  return startServe(database, [], { executable, cwd, env: EMPTY_ENVIRONMENT });
}

async function run(cwd: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const finished: Finished = await runProgram(args, {
    executable,
    cwd,
    env: { ...EMPTY_ENVIRONMENT, ...env },
  });
  assert.equal(finished.exitCode, 0, `${args.join(' ')}: ${finished.stderr}`);
  return finished.stdout;
}

suite('the executable', () => {
  test('is one file, with the licences of its parts beside it', () => {
    assert.deepEqual(readdirSync(join(folder, 'built')), ['THIRD-PARTY-LICENSES.txt', 'plant-store']);
    const text = readFileSync(join(folder, 'built', 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    for (const part of [process.versions.node, 'OpenSSL', 'V8', 'libuv'])
      assert.ok(text.includes(part), part);
    for (const dependency of Object.keys(packageJson.dependencies))
      assert.ok(bundle.packages.includes(`node_modules/${dependency}`), dependency);
    for (const each of bundle.packages) {
      const name = each.slice(each.lastIndexOf('node_modules/') + 'node_modules/'.length);
      assert.match(text, new RegExp(`^${name} [0-9]+\\.[0-9.]+ \\(`, 'm'));
    }
  });

  test('contains no path of the build machine', () => {
    const threads = [...bundle.code.matchAll(/data:text\/javascript;base64,([\w+/=]+)/g)].map(([, text]) =>
      Buffer.from(text!, 'base64').toString(),
    );
    assert.ok(threads.length > 0);
    for (const text of [bundle.code, ...threads]) {
      assert.ok(!text.includes(fileURLToPath(new URL('../..', import.meta.url))));
      assert.ok(!text.includes(tmpdir()));
    }
  });

  test('is identical after a second build', () => {
    build('again');
    const [first, again] = [executable, join(folder, 'again', 'plant-store')].map(file =>
      createHash('sha256').update(readFileSync(file)).digest('hex'),
    );
    assert.equal(again, first);
  });

  test('prints its version and its help', async () => {
    const cwd = emptyFolder('help');
    // Node prints no warning, for example about a rejected code cache.
    const { stdout, stderr } = await runProgram(['--version'], { executable, cwd, env: EMPTY_ENVIRONMENT });
    assert.deepEqual({ stdout, stderr }, { stdout: `${packageJson.version}\n`, stderr: '' });
    const help = await run(cwd, ['--help']);
    for (const command of ['serve', 'token', 'import', 'export', 'backup'])
      assert.match(help, new RegExp(`^ +${command}\\b`, 'm'));
    assert.doesNotMatch(await run(cwd, ['serve', '--help']), /npx/);
    assert.deepEqual(readdirSync(cwd), []);
  });

  test('runs every command in an empty folder', async () => {
    const cwd = emptyFolder('commands');
    const database = 'sqlite:plants.db';
    await using service = await serve(cwd, database);
    assert.equal(await sendPlant(service.url, service.token, 9007199254740993n), 200);
    const page = await (await fetch(`${service.url}/docs`)).text();
    for (const part of [PAGE_STYLE, PAGE_SCRIPT]) assert.ok(page.includes(part));
    await assertConsoleFiles(service);

    const token = (await run(cwd, ['token', 'create', 'nursery', '--database', database])).trim();
    const environment = { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: token };
    await run(cwd, ['add', '--tag', 'tree', '--', '-9223372036854775808', 'Ficus'], environment);
    writeFileSync(join(cwd, 'plants.csv'), 'id,name,tag\n1,"a, b",c\n');
    writeFileSync(join(cwd, 'plants.jsonl.gz'), gzipSync('{"id":9223372036854775807,"name":"d","tag":""}\n'));
    await run(cwd, ['import', 'plants.csv', 'plants.jsonl.gz'], environment);

    const expected =
      'id,name,tag\n-9223372036854775808,Ficus,tree\n1,"a, b",c\n9007199254740993,Monstera,\n9223372036854775807,d,""\n';
    assert.equal(await run(cwd, ['export', '--database', database]), expected);
    assert.match(
      await run(cwd, ['show', '1', '--database', database]),
      /^plant 1\nrevision 1 .* by nursery /,
    );
    assert.match(await run(cwd, ['token', 'list', '--database', database]), /^nursery .* valid/m);
    await run(cwd, ['backup', 'backup.db', '--database', database]);
    assert.equal((await service.stop('SIGTERM')).exitCode, 0);
    assert.equal(await run(cwd, ['export', '--database', 'sqlite:backup.db']), expected);
  });

  test('opens no debugger on SIGUSR1', async () => {
    await assertNoDebugger('sqlite:plants.db', {
      executable,
      cwd: emptyFolder('signalled'),
      env: EMPTY_ENVIRONMENT,
    });
  });

  test('stores plants on PostgreSQL', async () => {
    await using server = await PostgresServer.start();
    const database = await server.createDatabase();
    const cwd = emptyFolder('postgres');
    const token = (await run(cwd, ['token', 'create', 'first', '--database', database])).trim();
    await using service = await serve(cwd, database);
    assert.equal(await sendPlant(service.url, token, 9223372036854775807n), 200);
    assert.equal((await service.stop('SIGTERM')).exitCode, 0);
    await run(cwd, ['copy', '--from', database, '--to', 'sqlite:copied.db']);
    const exported = await run(cwd, ['export', '--database', 'sqlite:copied.db']);
    assert.equal(exported, 'id,name,tag\n9223372036854775807,Monstera,\n');
  });
});
