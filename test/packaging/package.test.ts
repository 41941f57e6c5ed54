import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
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
import { before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { build } from 'esbuild';
import packageJson from '../../package.json' with { type: 'json' };
import { runProgram, type StartOptions, sendPlant, startServe } from '../harness/program.ts';
import { testFolder } from '../harness/test-folder.ts';
import { bannedText, markdownLinks } from '../repository/repository-rules.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COMPILER = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
const folder = testFolder();
/** With the Node of these tests, and with an empty npm cache. */
const ENVIRONMENT = {
  ...process.env,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  npm_config_cache: join(folder, 'cache'),
};
/** The folder of a user who installs the package. */
const home = join(folder, 'home');
const installed = join(home, 'node_modules', 'plant-store');

// npm packs the package and installs it. The dependencies of the lock file are copied there first,
// so that npm needs no registry.
before(() => {
  npm(ROOT, ['pack', '--pack-destination', folder]);
  mkdirSync(home);
  for (const path of dependencyPaths()) cpSync(join(ROOT, path), join(home, path), { recursive: true });
  // Creates the links to their commands, without which npm reports them as broken.
  npm(home, ['rebuild', '--ignore-scripts']);
  npm(home, ['install', '--offline', join(folder, `plant-store-${packageJson.version}.tgz`)]);
});

function npm(cwd: string, args: string[]): void {
  execFileSync('npm', [...args, '--no-audit', '--no-fund'], { cwd, env: ENVIRONMENT, stdio: 'pipe' });
}

/** The folders of the packages that a user installs, relative to the root. */
function dependencyPaths(): string[] {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>;
  };
  return Object.keys(packages).filter(
    path => path !== '' && !packages[path]!.dev && existsSync(join(ROOT, path)),
  );
}

/** @returns paths relative to the root */
function filesIn(root: string, part: string): string[] {
  return globSync(`${part}/**/*`, { cwd: root }).filter(each => statSync(join(root, each)).isFile());
}

function textsOf(paths: string[]): { path: string; text: string }[] {
  return paths.map(path => ({ path, text: readFileSync(join(installed, path), 'utf8') }));
}

function inHome(name: string): StartOptions {
  const cwd = join(home, name);
  mkdirSync(cwd);
  const executable = join(home, 'node_modules', '.bin', 'plant-store');
  return { executable, cwd, env: { PATH: dirname(process.execPath) } };
}

/** Runs an ES module in the folder where the package is installed. */
function runModule(
  name: string,
  code: string,
  args: string[] = [],
  env: Record<string, string> = {},
): string {
  writeFileSync(join(home, name), code);
  return execFileSync(process.execPath, [name, ...args], { cwd: home, encoding: 'utf8', env });
}

suite('the package', () => {
  test('contains the program, its types and its documents, and no build files', () => {
    const documents =
      'ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE README.md RELEASING.md SECURITY.md';
    const all = `${documents} bench bin dist docs examples package.json`;
    assert.deepEqual(readdirSync(installed).sort(), all.split(' '));
    const files = filesIn(installed, 'dist');
    const declarations = files.filter(each => each.endsWith('.d.ts'));
    for (const each of declarations) assert.match(each, /^dist\/(?:client|contract)\//);
    // It contains all sources, compiled or unchanged, except files that only the compiler reads.
    const expected = filesIn(ROOT, 'src')
      .filter(each => !/\.d\.ts$|\/tsconfig\.json$/.test(each))
      .map(each => each.replace(/^src/, 'dist').replace(/\.ts$/, '.js'));
    assert.deepEqual(files.filter(each => !declarations.includes(each)).sort(), expected.sort());
    const texts = textsOf(files).map(({ path, text }) => ({ path: `${path}.txt`, text }));
    assert.deepEqual(bannedText(texts), []);
    assert.ok(texts.every(({ text }) => !text.includes(ROOT)));
  });

  test('contains the targets of all links in its documents', () => {
    const files = textsOf(filesIn(installed, '.'));
    assert.ok(files.some(({ path }) => path === 'README.md'));
    assert.deepEqual(markdownLinks(files), []);
  });

  test('runs by npx in a folder that has nothing else', () => {
    const options = { cwd: home, env: ENVIRONMENT, encoding: 'utf8' } as const;
    const version = execFileSync('npx', ['--offline', 'plant-store', '--version'], options);
    assert.equal(version, `${packageJson.version}\n`);
  });

  test('stores plants, backs them up and exports them', async () => {
    const options = inHome('service');
    await using service = await startServe('sqlite:plants.db', [], options);
    assert.equal(await sendPlant(service.url, service.token, 9007199254740993n), 200);
    const backup = await runProgram(['backup', 'backup.db', '--database', 'sqlite:plants.db'], options);
    assert.equal(backup.exitCode, 0, backup.stderr);
    assert.equal((await service.stop('SIGTERM')).exitCode, 0);
    const exported = await runProgram(['export', '--database', 'sqlite:backup.db'], options);
    assert.equal(exported.stdout, 'id,name,tag\n9007199254740993,Monstera,\n');
  });

  test('has a client, with an example that sends a plant', async () => {
    await using service = await startServe('sqlite:plants.db', [], inHome('client'));
    const example = readFileSync(join(installed, 'examples/send-plant.mjs'), 'utf8');
    const env = { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token };
    const output = runModule('send-plant.mjs', example, ['9007199254740993', 'Ficus'], env);
    assert.equal(output, 'created plant 9007199254740993, revision 1\n');
  });

  test('has the contract, with each record shape as a self-contained JSON Schema', () => {
    const output = runModule(
      'contract.mjs',
      `import { ERRORS, ID_MAX, openApiJson, readNewPlantText, schemaJson } from 'plant-store/contract';
       console.log(JSON.stringify({
         idTaken: ERRORS.idTaken.number,
         idMax: String(ID_MAX),
         openapi: JSON.parse(openApiJson()).openapi,
         message: readNewPlantText('{}').message,
         schema: schemaJson('NewPlant'),
       }));`,
    );
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
  });

  test('has types that compile without those of Node', () => {
    writeFileSync(
      join(home, 'typed.ts'),
      `import { PlantStore, type StoredPlant } from 'plant-store/client';
       import { ERRORS, type ErrorName, type NewPlant } from 'plant-store/contract';
       const store = new PlantStore({ url: 'http://127.0.0.1:1', token: 'a' });
       export const stored: Promise<StoredPlant> = store.createPlant({ id: 1n, name: 'a' });
       export const plant: NewPlant = { id: 1n, name: 'a', tag: 'b' };
       export const taken: 40003 = ERRORS.idTaken.number;
       // @ts-expect-error
       store.createPlant({ id: 1n });
       // @ts-expect-error
       export const unknown: ErrorName = 'unknown';`,
    );
    const compilerOptions = {
      ...{ module: 'nodenext', target: 'es2024', lib: ['es2024', 'dom'], types: [] },
      ...{ strict: true, exactOptionalPropertyTypes: true, noEmit: true },
    };
    writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['typed.ts'] }));
    const { stdout } = spawnSync(process.execPath, [COMPILER, '-p', home], { encoding: 'utf8' });
    assert.equal(stdout, '');
  });

  test('has a client and a contract for browsers: they import no module of Node', async () => {
    const contents = "export * from 'plant-store/client';\nexport * from 'plant-store/contract';\n";
    const { warnings, metafile } = await build({
      ...{ stdin: { contents, resolveDir: home }, bundle: true, platform: 'browser', format: 'esm' },
      ...{ write: false, metafile: true, logLevel: 'silent' },
    });
    assert.deepEqual(warnings, []);
    for (const input of Object.keys(metafile.inputs))
      assert.match(input, /<stdin>|node_modules\/plant-store\/dist\/(?:client|contract)\//);
  });
});
