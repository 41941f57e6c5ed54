import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import packageJson from '../../package.json' with { type: 'json' };
import { freePort } from '../harness/free-port.ts';
import { LoggingClient } from '../harness/logging-client.ts';
import { mountNamespace } from '../harness/mount-namespace.ts';
import { runProgram, startServe } from '../harness/program.ts';
import { testFolder } from '../harness/test-folder.ts';

const UNPACKED_BYTES_MAX = 180_000_000;
const USER = 65_532;
/** Runs a program of the image as a container engine does: as its user, with a read-only root. */
const IN_CONTAINER = `
  mount --rbind "$ROOT" "$ROOT" && mount --rbind /proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" &&
  mount --bind "$VOLUME" "$ROOT/data" && mount -o remount,bind,ro "$ROOT" &&
  exec unshare --user --map-user=${USER} --map-group=${USER} --root="$ROOT" "$0" "$@"`;

const folder = testFolder();
const built = join(folder, 'built');
const root = join(folder, 'root');
const volume = join(folder, 'volume');

function build(program: string): void {
  const file = fileURLToPath(new URL(`../../packaging/${program}`, import.meta.url));
  execFileSync(process.execPath, [file, built], { stdio: 'pipe' });
}

function readArchive(): Buffer {
  const [file] = globSync('*-image.tar', { cwd: built });
  return readFileSync(join(built, file!));
}

/** The image of an archive, whose root is unpacked into `root`. */
function unpack(archive: Buffer) {
  for (const each of [root, volume]) mkdirSync(each);
  const read = (file: string): Buffer =>
    execFileSync('tar', ['-xO', file], { input: archive, maxBuffer: UNPACKED_BYTES_MAX });
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
      build('build-executable.ts');
      build('build-image.ts');
      image = unpack(readArchive());
    });

    test('is identical after a second build', () => {
      const archive = readArchive();
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
