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
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { build } from 'esbuild';
import packageJson from '../../package.json' with { type: 'json' };
import clientJson from '../../packages/client/package.json' with { type: 'json' };
import { assertConsoleFiles } from '../harness/console-files.ts';
import { JAVASCRIPT_RUNTIMES } from '../harness/javascript-runtimes.ts';
import { runProgram, type StartOptions, sendPlant, startServe } from '../harness/program.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { testFolder } from '../harness/test-folder.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COMPILER = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
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

// npm packs both packages and installs each. The dependencies of the lock file are copied there
// first, so that npm needs no registry.
before(() => {
  npm(ROOT, ['pack', '--workspaces', '--include-workspace-root', '--pack-destination', folder]);
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

/** The folders of the packages that a user installs, relative to the root. */
function dependencyPaths(): string[] {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; link?: boolean }>;
  };
  return Object.entries(packages)
    .filter(([path, { dev, link }]) => /^node_modules/.test(path) && !dev && !link)
    .map(([path]) => path)
    .filter(path => existsSync(join(ROOT, path)));
}

/** @returns paths relative to the root */
function filesIn(root: string, part: string): string[] {
  return globSync(`${part}/**/*`, { cwd: root }).filter(each => statSync(join(root, each)).isFile());
}

function inHome(name: string): StartOptions {
  const cwd = join(home, name);
  mkdirSync(cwd);
  const executable = join(home, 'node_modules', '.bin', 'plant-store');
  return { executable, cwd, env: { PATH: dirname(process.execPath) } };
}

/** npm keeps a hidden file in node_modules. */
function isVisible(name: string): boolean {
  return !name.startsWith('.');
}

const CONTRACT_PROGRAM = `
  import { ERRORS, ID_MAX, openApiJson, readNewPlantText, schemaJson } from 'plant-store-client/contract';
  console.log(JSON.stringify({
    idTaken: ERRORS.idTaken.number,
    idMax: String(ID_MAX),
    openapi: JSON.parse(openApiJson()).openapi,
    message: readNewPlantText('{}').message,
    schema: schemaJson('NewPlant'),
  }));`;

/** @param output of the program above */
function assertContract(output: string): void {
  const { schema, ...others } = JSON.parse(output);
  assert.deepEqual(others, {
    idTaken: 40003,
    idMax: '9223372036854775807',
    openapi: '3.1.0',
    message: 'id is required; name is required',
  });
  assert.match(schema, /"maximum": 9223372036854775807,\n/);
  const isNewPlant = new Ajv2020({ formats: { int64: true } }).compile(JSON.parse(schema));
  assert.ok(isNewPlant({ id: 1, name: '', tag: '' }));
  for (const faulty of [{ name: 'a' }, { id: 1 }, { id: 1.5, name: 'a' }, { id: 1, name: 'a', tag: null }])
    assert.ok(!isNewPlant(faulty));
}

suite('the package of the service', () => {
  test('contains the program and its documents, and no build files', () => {
    const documents =
      'ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE README.md RELEASING.md SECURITY.md';
    const all = `${documents} bench bin deploy dist docs examples package.json`;
    assert.deepEqual(readdirSync(installed).sort(), all.split(' '));
    const files = filesIn(installed, 'dist');
    // It contains all sources, compiled or unchanged, except files that only the compiler reads.
    const expected = filesIn(ROOT, 'src')
      .filter(each => !/\.d\.ts$|\/tsconfig\.json$/.test(each))
      .map(each => each.replace(/^src/, 'dist').replace(/\.ts$/, '.js'));
    assert.deepEqual(files.sort(), expected.sort());
    for (const file of files) assert.ok(!readFileSync(join(installed, file)).includes(ROOT), file);
  });

  test('runs by npx, and exports the client for programs beside the service', () => {
    const options = { cwd: home, env: ENVIRONMENT, encoding: 'utf8' } as const;
    const version = execFileSync('npx', ['--offline', 'plant-store', '--version'], options);
    assert.equal(version, `${packageJson.version}\n`);
    const program = `import { PlantStore } from 'plant-store'; console.log(typeof PlantStore)`;
    const args = ['--input-type=module', '--eval', program];
    assert.equal(execFileSync(process.execPath, args, options), 'function\n');
  });

  test('stores plants, backs them up and exports them', async () => {
    const options = inHome('service');
    await using service = await startServe('sqlite:plants.db', [], options);
    assert.equal(await sendPlant(service.url, service.token, 9007199254740993n), 200);
    await assertConsoleFiles(service);
    const backup = await runProgram(['backup', 'backup.db', '--database', 'sqlite:plants.db'], options);
    assert.equal(backup.exitCode, 0, backup.stderr);
    assert.equal((await service.stop('SIGTERM')).exitCode, 0);
    const exported = await runProgram(['export', '--database', 'sqlite:backup.db'], options);
    assert.equal(exported.stdout, 'id,name,tag\n9007199254740993,Monstera,\n');
  });
});

suite('the package of the client', () => {
  test('contains the client, the contract and their types, and depends on nothing', () => {
    assert.deepEqual(readdirSync(join(clientHome, 'node_modules')).filter(isVisible), ['plant-store-client']);
    assert.deepEqual(readdirSync(installedClient).sort(), ['LICENSE', 'README.md', 'dist', 'package.json']);
    const sources = ['client', 'contract'].flatMap(part => filesIn(join(ROOT, 'src'), part));
    const expected = sources.flatMap(each => ['.js', '.d.ts'].map(end => each.replace(/\.ts$/, end)));
    assert.deepEqual(filesIn(join(installedClient, 'dist'), '.').sort(), expected.sort());
    assert.equal(clientJson.version, packageJson.version);
  });

  let service: RunningService;
  before(async () => {
    service = await startTestService();
    cpSync(join(ROOT, 'examples/send-plant.mjs'), join(clientHome, 'send-plant.mjs'));
    writeFileSync(join(clientHome, 'contract.mjs'), CONTRACT_PROGRAM);
  });
  after(() => service[Symbol.asyncDispose]());

  for (const [index, { name, executable, args }] of JAVASCRIPT_RUNTIMES.entries()) {
    test(`${name}: sends a plant, and has the contract`, async () => {
      const run = async (...program: string[]): Promise<string> => {
        const env = { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token };
        const options = { cwd: clientHome, env, timeout: 60_000 };
        return (await promisify(execFile)(executable, [...args, ...program], options)).stdout;
      };
      const id = String(9007199254740993n + BigInt(index));
      assert.equal(await run('send-plant.mjs', id, 'Ficus'), `created plant ${id}, revision 1\n`);
      assertContract(await run('contract.mjs'));
    });
  }

  test('has types that compile without those of Node', () => {
    writeFileSync(
      join(clientHome, 'typed.ts'),
      `import { PlantStore, type StoredPlant } from 'plant-store-client';
       import { ERRORS, type ErrorName, type NewPlant } from 'plant-store-client/contract';
       const store = new PlantStore({ url: 'http://127.0.0.1:1', token: 'a' });
       export const stored: Promise<StoredPlant> = store.createPlant({ id: 1n, name: 'a' });
       export const text: Promise<string> = stored.then(plant => plant.toJSON().id);
       export const plant: NewPlant = { id: 1n, name: 'a', tag: 'b' };
       export const taken: 40003 = ERRORS.idTaken.number;
       // @ts-expect-error
       store.createPlant({ id: 1n });
       // @ts-expect-error
       export const unknown: ErrorName = 'unknown';`,
    );
    for (const options of [{ module: 'nodenext' }, { module: 'esnext', moduleResolution: 'bundler' }]) {
      const compilerOptions = {
        ...{ ...options, target: 'es2024', lib: ['es2024', 'dom'], types: [] },
        ...{ strict: true, exactOptionalPropertyTypes: true, noEmit: true },
      };
      const configuration = { compilerOptions, files: ['typed.ts'] };
      writeFileSync(join(clientHome, 'tsconfig.json'), JSON.stringify(configuration));
      const { stdout } = spawnSync(process.execPath, [COMPILER, '-p', clientHome], { encoding: 'utf8' });
      assert.equal(stdout, '');
    }
  });

  test('is for browsers too: it imports no module of Node', async () => {
    const contents =
      "export * from 'plant-store-client';\nexport * as contract from 'plant-store-client/contract';\n";
    const { warnings, metafile } = await build({
      ...{ stdin: { contents, resolveDir: clientHome }, bundle: true, platform: 'browser', format: 'esm' },
      ...{ write: false, metafile: true, logLevel: 'silent' },
    });
    assert.deepEqual(warnings, []);
    for (const input of Object.keys(metafile.inputs))
      assert.match(input, /<stdin>|node_modules\/plant-store-client\/dist\/(?:client|contract)\//);
  });
});
