import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import packageJson from '../../package.json' with { type: 'json' };
import clientJson from '../../packages/client/package.json' with { type: 'json' };
import { assertConsoleFiles } from '../harness/console-files.ts';
import { copyCheckout } from '../harness/copied-checkout.ts';
import { runProgram, sendPlant, startServe } from '../harness/program.ts';
import { startTestService } from '../harness/running-service.ts';
import { testFolder } from '../harness/test-folder.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COMPILER = fileURLToPath(
  new URL('../../packaging/compiler/node_modules/typescript/bin/tsc', import.meta.url),
);
const folder = testFolder();
/** With the Node of these tests, and with an empty npm cache. */
const ENVIRONMENT = {
  ...process.env,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  npm_config_cache: join(folder, 'cache'),
};
/** The folder of a user who installs the service. */
const home = join(folder, 'home');
const installed = join(home, 'node_modules', 'plant-store');
/** The folder of a user who installs only the client. */
const clientHome = join(folder, 'client-home');
const installedClient = join(clientHome, 'node_modules', 'plant-store-client');

/** A checkout with the packages of the service and of a build, and without those of the tests. */
const checkout = join(folder, 'checkout');

// npm packs both packages and installs each. The dependencies of the lock file are copied there
// first, so that npm needs no registry.
before(() => {
  copyCheckout(checkout);
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  const compiler = join('packaging', 'compiler', 'node_modules');
  cpSync(join(ROOT, compiler), join(checkout, compiler), { recursive: true, preserveTimestamps: true });
  // Packing the service builds both. Packing the client would only build both once more.
  const pack = ['pack', '--offline', '--pack-destination', folder];
  npm(checkout, pack);
  assert.equal(clientJson.scripts.prepack, 'npm --prefix ../.. run build');
  npm(checkout, [...pack, '--workspaces', '--ignore-scripts']);
  mkdirSync(home);
  for (const path of dependencyPaths()) cpSync(join(ROOT, path), join(home, path), { recursive: true });
  // Creates the links to their commands, without which npm reports them as broken.
  npm(home, ['rebuild', '--ignore-scripts']);
  npm(home, ['install', '--offline', join(folder, `plant-store-${packageJson.version}.tgz`)]);
  mkdirSync(clientHome);
  npm(clientHome, ['install', '--offline', join(folder, `plant-store-client-${packageJson.version}.tgz`)]);
});

function npm(cwd: string, args: string[]): void {
  execFileSync('npm', [...args, '--no-audit', '--no-fund'], { cwd, env: ENVIRONMENT, stdio: 'pipe' });
}

/** The folders of the packages that a user installs, without the link to the client. */
function dependencyPaths(): string[] {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  return Object.keys(packages).filter(
    path =>
      path.startsWith('node_modules') &&
      !packages[path].dev &&
      !packages[path].link &&
      existsSync(join(ROOT, path)),
  );
}

function filesIn(root: string, part: string): string[] {
  return globSync(`${part}/**/*`, { cwd: root }).filter(each => statSync(join(root, each)).isFile());
}

test('the package of the service contains the program and its documents, and no build files', () => {
  const documents = globSync('*.md', { cwd: ROOT });
  const others = ['LICENSE', 'bench', 'bin', 'deploy', 'dist', 'docs', 'examples', 'package.json'];
  assert.deepEqual(readdirSync(installed).sort(), [...documents, ...others].sort());
  const files = filesIn(installed, 'dist');
  // It contains all sources, compiled or unchanged, except files that only the compiler reads.
  const expected = ['package.json', 'src', 'tools']
    .flatMap(each => (each === 'package.json' ? each : filesIn(ROOT, each)))
    .filter(each => !each.endsWith('.d.ts'))
    .map(each => join('dist', each).replace(/\.ts$/, '.js'));
  assert.deepEqual(files.sort(), expected.sort());
  for (const file of files) assert.ok(!readFileSync(join(installed, file)).includes(checkout), file);
});

test('the package of the service stores plants, backs them up and exports them, and has the client', async () => {
  const cwd = join(home, 'service');
  mkdirSync(cwd);
  const executable = join(home, 'node_modules', '.bin', 'plant-store');
  const options = { executable, cwd, env: { PATH: dirname(process.execPath) } };
  await using service = await startServe('sqlite:plants.db', [], options);
  assert.equal(await sendPlant(service.url, service.token, 9007199254740993n), 200);
  await assertConsoleFiles(service);
  const backup = await runProgram(['backup', 'backup.db', '--database', 'sqlite:plants.db'], options);
  assert.equal(backup.exitCode, 0, backup.stderr);
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
  const exported = await runProgram(['export', '--database', 'sqlite:backup.db'], options);
  assert.equal(exported.stdout, 'id,name,tag\n9007199254740993,Monstera,\n');
  const importing = ['--input-type=module', '-e', `import { PlantStore } from 'plant-store'`];
  assert.equal(spawnSync(process.execPath, importing, { cwd: home }).status, 0);
});

test('the package of the client contains the client, the contract and their types, and depends on nothing', () => {
  assert.deepEqual(globSync('node_modules/*', { cwd: clientHome }), ['node_modules/plant-store-client']);
  assert.deepEqual(readdirSync(installedClient).sort(), ['LICENSE', 'README.md', 'dist', 'package.json']);
  const sources = ['client', 'core/contract'].flatMap(part => filesIn(join(ROOT, 'src'), part));
  const expected = sources.flatMap(each => ['.js', '.d.ts'].map(end => each.replace(/\.ts$/, end)));
  assert.deepEqual(filesIn(join(installedClient, 'dist'), '.').sort(), expected.sort());
  assert.equal(clientJson.version, packageJson.version);
});

test('the package of the client sends a plant, and has the contract', async () => {
  cpSync(join(ROOT, 'examples/send-plant.mjs'), join(clientHome, 'send-plant.mjs'));
  writeFileSync(
    join(clientHome, 'contract.mjs'),
    `import { ERRORS, ID_MAX, readNewPlantText, schemaJson } from 'plant-store-client/contract';
     JSON.parse(schemaJson('NewPlant'));
     console.log([ERRORS.idTaken.number, ID_MAX, readNewPlantText('{}').message].join());`,
  );
  await using service = await startTestService();
  const env = { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token };
  const run = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, args, { cwd: clientHome, env })).stdout;
  const stored = await run('send-plant.mjs', '9007199254740993', 'Ficus');
  assert.equal(stored, 'created plant 9007199254740993, revision 1\n');
  assert.match(await run('contract.mjs'), /^40003,9223372036854775807,id is required; name/);
});

test('the package of the client has types that compile without those of Node', () => {
  writeFileSync(
    join(clientHome, 'typed.ts'),
    `import { PlantStore, type StoredPlant } from 'plant-store-client';
     import { ERRORS, type NewPlant } from 'plant-store-client/contract';
     const store = new PlantStore({ url: 'http://127.0.0.1:1', token: 'a' });
     export const stored: Promise<StoredPlant> = store.createPlant({ id: 1n, name: 'a' });
     export const plant: NewPlant = { id: 1n, name: 'a', tag: 'b' };
     export const taken: 40003 = ERRORS.idTaken.number;
     // @ts-expect-error
     store.createPlant({ id: 1n });`,
  );
  for (const module of ['nodenext', 'esnext --moduleResolution bundler']) {
    const flags = `--module ${module} --target es2024 --lib es2024,dom --strict --exactOptionalPropertyTypes`;
    const args = [COMPILER, ...flags.split(' '), '--noEmit', 'typed.ts'];
    const { stdout } = spawnSync(process.execPath, args, { cwd: clientHome, encoding: 'utf8' });
    assert.equal(stdout, '');
  }
});
