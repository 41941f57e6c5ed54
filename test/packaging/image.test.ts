import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import packageJson from '../../package.json' with { type: 'json' };
import type { LoggedRequest } from '../harness/client-log.ts';
import { freePort } from '../harness/free-port.ts';
import { LoggingClient } from '../harness/logging-client.ts';
import { mountNamespace } from '../harness/mount-namespace.ts';
import { runInTime, startServe } from '../harness/program.ts';
import { RandomLoad } from '../harness/random-load.ts';
import { SEED } from '../harness/seeded-random.ts';
import { faultsIn } from '../harness/stored-revisions.ts';
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
const again = join(folder, 'again');
const layout = join(folder, 'layout');
const root = join(folder, 'root');
const volume = join(folder, 'volume');

function build(program: string, to: string): void {
  const file = fileURLToPath(new URL(`../../packaging/${program}`, import.meta.url));
  execFileSync(process.execPath, [file, to], { stdio: 'pipe' });
}

function archiveIn(to: string): string {
  return join(to, readdirSync(to).find(file => file.endsWith('-image.tar'))!);
}

interface Descriptor {
  digest: string;
  size: number;
}

const isDebian = spawnSync('dpkg-query', ['--version']).status === 0;
if (!isDebian) console.error('NOT TESTED HERE: the image needs libraries of Debian or Ubuntu');

/** Reads a blob and checks it against its descriptor. */
function blob({ digest, size }: Descriptor): Buffer {
  const bytes = readFileSync(join(layout, 'blobs', digest.replace(':', '/')));
  assert.deepEqual([sha256(bytes), bytes.length], [digest, size]);
  return bytes;
}

function sha256(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** The image of the archive in `built`, unpacked into `layout` and `root`. */
function unpack() {
  for (const each of [layout, root, volume]) mkdirSync(each);
  execFileSync('tar', ['-xf', archiveIn(built), '-C', layout]);
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'));
  const { config, layers } = JSON.parse(blob(manifests[0]).toString());
  const layer = gunzipSync(blob(layers[0]));
  const list = { input: layer, encoding: 'utf8' } as const;
  const listed = execFileSync('tar', ['--list', '--verbose', '--numeric-owner'], list).trimEnd().split('\n');
  execFileSync('tar', ['-x', '-C', root], { input: layer });
  // Container engines make these folders.
  for (const each of ['proc', 'dev']) mkdirSync(join(root, each));
  const { config: settings, rootfs } = JSON.parse(blob(config).toString());
  return { settings, rootfs, layer, listed };
}

async function container(settings: { Env: string[] }): Promise<void> {
  const inNamespace = mountNamespace('the image');
  if (inNamespace === undefined) return;
  const opsPort = await freePort();
  const env: Record<string, string> = { ROOT: root, VOLUME: volume, PLANT_STORE_OPS: `0.0.0.0:${opsPort}` };
  for (const each of settings.Env) env[each.split('=')[0]!] ??= each.split('=')[1]!;
  const { PLANT_STORE_DATABASE: database = '', PATH = '', ...others } = env;
  const prefix = [...inNamespace, 'sh', '-c', IN_CONTAINER];
  // The shell finds its programs in PATH. The image has only one.
  const options = {
    prefix,
    env: { ...others, PATH: `${process.env.PATH}` },
    executable: `${PATH}/plant-store`,
  };
  const stored = database.replace('sqlite:/data', `sqlite:${volume}`);
  const log: LoggedRequest[] = [];
  const plant = { id: 9007199254740993n, name: 'Monstera', tag: 'first' };
  let token = '';
  for (const outcome of ['created', 'unchanged']) {
    await using serve = await startServe(database, ['--ops', `127.0.0.1:${opsPort}`], options);
    token ||= serve.token;
    const client = new LoggingClient(serve.url, token, log);
    assert.equal((await client.send(plant)).response?.outcome, outcome);
    await client.close();
    const load = new RandomLoad(serve.url, token, log, SEED);
    await load.inFlight();

    const health = { exitCode: 0, stdout: 'the service is ready\n', stderr: '' };
    assert.deepEqual(await runInTime(['health'], options), health);
    for (const file of ['/plants.db', '/tmp.db', '/usr/local/bin/plants.db']) {
      const { exitCode, stderr } = await runInTime(['backup', file], options);
      assert.match(stderr, /cannot be created \(EROFS\)/);
      assert.equal(exitCode, 1);
    }
    const status = readFileSync(`/proc/${serve.child.pid}/status`, 'utf8');
    assert.match(status, /^CapEff:\s0+$/m);
    const [{ exitCode, stdout }] = await Promise.all([serve.stop('SIGTERM'), load.ended()]);
    assert.equal(exitCode, 0, stdout);
    assert.deepEqual(await faultsIn(stored, log), []);
  }
}

if (isDebian)
  suite('the image', () => {
    let image: ReturnType<typeof unpack>;

    before(() => {
      build('build-executable.ts', built);
      build('build-image.ts', built);
      image = unpack();
    });

    test('is identical after a second build', () => {
      mkdirSync(again);
      for (const file of ['plant-store', 'THIRD-PARTY-LICENSES.txt'])
        linkSync(join(built, file), join(again, file));
      build('build-image.ts', again);
      assert.equal(sha256(readFileSync(archiveIn(again))), sha256(readFileSync(archiveIn(built))));
    });

    test('has only root-owned files besides /data, and settings for a container', () => {
      const { settings, rootfs, layer, listed } = image;
      assert.deepEqual(rootfs.diff_ids, [sha256(layer)]);
      assert.ok(layer.length <= UNPACKED_BYTES_MAX, `${layer.length}`);
      const others = listed.filter(line => !/^[d-]rw[x-]r-[x-]r-[x-] 0\/0 /.test(line));
      assert.match(others.join('\n'), /^drwx------ 65532\/65532 .* data\/$/);
      const { User, Entrypoint, Cmd, Volumes, Healthcheck, Labels } = settings;
      const program = '/usr/local/bin/plant-store';
      assert.deepEqual(
        [User, Entrypoint, Cmd, Volumes],
        ['65532:65532', [program], ['serve'], { '/data': {} }],
      );
      assert.deepEqual(Healthcheck.Test, ['CMD', program, 'health']);
      assert.equal(Labels['org.opencontainers.image.version'], packageJson.version);
      const [docker] = JSON.parse(readFileSync(join(layout, 'manifest.json'), 'utf8'));
      for (const file of [docker.Config, ...docker.Layers]) assert.ok(existsSync(join(layout, file)), file);
    });

    test('lists its software, with the licences', () => {
      const documents = join(root, 'usr/share/doc');
      const { components } = JSON.parse(readFileSync(join(documents, 'plant-store/sbom.cdx.json'), 'utf8'));
      const licences = readFileSync(join(documents, 'plant-store/THIRD-PARTY-LICENSES.txt'), 'utf8');
      const kinds = Map.groupBy<string, { purl: string; name: string; version: string }>(
        components,
        ({ purl }) => purl.split('/')[0]!,
      );
      for (const { name, version } of kinds.get('pkg:npm')!)
        assert.ok(licences.includes(`\n${name} ${version} (`), name);
      assert.ok(kinds.get('pkg:deb')!.some(({ name }) => name === 'libc6'));
      for (const { name } of kinds.get('pkg:deb')!)
        assert.ok(readFileSync(join(documents, name, 'copyright')).length > 0, name);
      assert.deepEqual(
        kinds.get('pkg:generic')!.map(({ version }) => version),
        [process.versions.node],
      );
    });

    test('runs as its user on a read-only root, and loses nothing on SIGTERM under load', () =>
      container(image.settings));
  });
