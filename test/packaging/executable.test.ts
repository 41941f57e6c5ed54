import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import packageJson from '../../package.json' with { type: 'json' };
import { bundleProgram } from '../../packaging/program-bundle.ts';
import { PAGE_SCRIPT, PAGE_STYLE } from '../../src/pages/docs/docs-page.ts';
import { assertConsoleFiles } from '../harness/console-files.ts';
import { assertNoDebugger } from '../harness/debugger-signal.ts';
import { freePort } from '../harness/free-port.ts';
import { LoggingClient } from '../harness/logging-client.ts';
import { mountNamespace } from '../harness/mount-namespace.ts';
import { runProgram, type StartOptions, sendPlant, startServe } from '../harness/program.ts';
import { testFolder } from '../harness/test-folder.ts';

const folder = testFolder();
const built = join(folder, 'built');
const executable = join(built, 'plant-store');

before(() => build('build-executable.ts'));

function build(program: string): void {
  const file = fileURLToPath(new URL(`../../packaging/${program}`, import.meta.url));
  execFileSync(process.execPath, [file, built], { stdio: 'pipe' });
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
  assert.deepEqual(readdirSync(built), ['THIRD-PARTY-LICENSES.txt', 'plant-store']);
  const licences = readFileSync(join(built, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
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

const UNPACKED_MAX_BYTES = 180_000_000;
const USER = 65_532;
/** Runs a program of the image as a container engine does: as its user, with a read-only root. */
const IN_CONTAINER = `
  mount --rbind "$ROOT" "$ROOT" && mount --rbind /proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" &&
  mount --bind "$VOLUME" "$ROOT/data" && mount -o remount,bind,ro "$ROOT" &&
  exec unshare --user --map-user=${USER} --map-group=${USER} --root="$ROOT" "$0" "$@"`;

const root = join(folder, 'root');
const volume = join(folder, 'volume');

function readArchive(): Buffer {
  const [file] = globSync('*-image.tar', { cwd: built });
  return readFileSync(join(built, file!));
}

/** The image of an archive, whose root is unpacked into `root`. */
function unpack(archive: Buffer) {
  for (const each of [root, volume]) mkdirSync(each);
  const read = (file: string): Buffer =>
    execFileSync('tar', ['-xO', file], { input: archive, maxBuffer: UNPACKED_MAX_BYTES });
  const [{ Config, Layers, RepoTags }] = JSON.parse(read('manifest.json').toString());
  const { config } = JSON.parse(read(Config).toString());
  const layer = read(Layers[0]);
  const listed = execFileSync('tar', ['--list', '--verbose', '--numeric-owner'], { input: layer });
  execFileSync('tar', ['-x', '-C', root], { input: layer });
  // Container engines make these folders.
  for (const each of ['proc', 'dev']) mkdirSync(join(root, each));
  return { config, listed: `${listed}`.trimEnd().split('\n'), layers: Layers.length, tags: RepoTags };
}

const canBuild = ['dpkg-query --version', 'buildah --storage-driver vfs info'].every(
  command => spawnSync(command, { shell: true }).status === 0,
);
if (!canBuild) console.error('NOT TESTED HERE: the image needs Debian or Ubuntu, and buildah');
else
  suite('the image', () => {
    let image: ReturnType<typeof unpack>;

    before(() => {
      build('build-image.ts');
      image = unpack(readArchive());
    });

    test('and its executable are identical after a second build', () => {
      const [first, archive] = [readFileSync(executable), readArchive()];
      build('build-executable.ts');
      assert.ok(readFileSync(executable).equals(first));
      build('build-image.ts');
      assert.ok(readArchive().equals(archive));
    });

    test('has only root-owned files besides /data, and settings for a container', () => {
      const { config, listed, layers, tags } = image;
      assert.deepEqual([layers, tags], [1, [`localhost/plant-store:${packageJson.version}`]]);
      const others = listed.filter(line => !/^[d-]rw[x-]r-[x-]r-[x-] 0\/0 /.test(line));
      assert.match(others.join('\n'), /^drwx------ 65532\/65532 .* data\/$/);
      const program = '/usr/local/bin/plant-store';
      const { User, Entrypoint, Cmd, Volumes, Labels } = config;
      const settings = [`${USER}:${USER}`, [program], ['serve'], { '/data': {} }];
      assert.deepEqual([User, Entrypoint, Cmd, Volumes], settings);
      assert.equal(Labels['org.opencontainers.image.version'], packageJson.version);
      // An OCI image cannot contain a health check. Docker makes one from this line.
      const dockerfile = readFileSync(join(built, 'image/Dockerfile'), 'utf8');
      assert.ok(dockerfile.includes(`\nHEALTHCHECK CMD ["${program}", "health"]\n`));
    });

    test('lists its software, with the licences', () => {
      const documents = join(root, 'usr/share/doc');
      const { components } = JSON.parse(readFileSync(join(documents, 'plant-store/sbom.cdx.json'), 'utf8'));
      const licences = readFileSync(join(documents, 'plant-store/THIRD-PARTY-LICENSES.txt'), 'utf8');
      const listed = components.map((each: { purl: string }) => each.purl).join('\n');
      assert.ok(listed.includes(`pkg:generic/node@${process.versions.node}\n`));
      for (const [, name = '', version] of listed.matchAll(/^pkg:npm\/(.+)@(.+)$/gm))
        assert.ok(licences.includes(`\n${name.replace('%40', '@')} ${version} (`), name);
      assert.match(listed, /^pkg:deb\/\w+\/libc6@/m);
      for (const [, name = ''] of listed.matchAll(/^pkg:deb\/\w+\/(.+)@/gm))
        assert.ok(statSync(join(documents, name, 'copyright')).size > 0, name);
    });

    test('runs as its user on a read-only root, and keeps its plants', async () => {
      const inNamespace = mountNamespace('the image');
      if (inNamespace === undefined) return;
      const ops = await freePort();
      const env: Record<string, string> = { ROOT: root, VOLUME: volume, PLANT_STORE_OPS: `0.0.0.0:${ops}` };
      for (const each of image.config.Env) env[each.split('=')[0]] ??= each.split('=')[1];
      const { PLANT_STORE_DATABASE: database = '', PATH = '', ...others } = env;
      const options = {
        prefix: [...inNamespace, 'sh', '-c', IN_CONTAINER],
        // The shell finds its programs in PATH. The image has only one.
        env: { ...others, PATH: `${process.env.PATH}` },
        executable: `${PATH}/plant-store`,
      };
      let token = '';
      for (const outcome of ['created', 'unchanged']) {
        await using serve = await startServe(database, ['--ops', `127.0.0.1:${ops}`], options);
        token ||= serve.token;
        const client = new LoggingClient(serve.url, token, []);
        const { response } = await client.send({ id: 9007199254740993n, name: 'Monstera', tag: 'first' });
        assert.equal(response?.outcome, outcome);
        await client.close();
        const health = { exitCode: 0, stdout: 'the service is ready\n', stderr: '' };
        assert.deepEqual(await runProgram(['health'], options), health);
        const { stderr } = await runProgram(['backup', '/plants.db'], options);
        assert.match(stderr, /cannot be created \(EROFS\)/);
        assert.match(readFileSync(`/proc/${serve.child.pid}/status`, 'utf8'), /^CapEff:\s0+$/m);
        assert.equal((await serve.stop('SIGTERM')).exitCode, 0);
      }
    });
  });
