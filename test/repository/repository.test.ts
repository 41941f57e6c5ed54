import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const ROOT = path.resolve(import.meta.dirname, '../..');
const NOT_OURS = ['node_modules', 'dist', 'data', 'executable'];
const SELF = 'test/repository/repository.test.ts';
const CODE = /\.[cm]?[jt]s$/;

/** Text that must not occur in files, with what to write instead. */
const BANNED: [files: RegExp, text: RegExp, instead: string][] = [
  [
    /^src\/(?!cli\/|main\.ts).*\.ts$/,
    /\bprocess\.(?:argv|exit|kill|on)/,
    'a callback; of src, only main.ts and cli use these',
  ],
  [/^(?:src|tools)\//, /\bparse(?:Int|Float)\(/, 'a check of the text first: these read "12abc" as 12'],
  [
    /^(?:src|tools)\//,
    /\b(?:error|cause)\.message(?: [!=]==|\??\.(?:includes|match|startsWith)\()/,
    'its code',
  ],
  [CODE, /@ts-(?:ignore|nocheck)|biome-ignore/, 'a fix, or another rule in biome.json or tsconfig.json'],
  [/^/, /(?<![\w.~-])\/(?:work|root|home|Users)\/[\w.]/, 'a relative path: this exists on one machine'],
  [/package-lock\.json$/, /"resolved": "[a-z+]+:/, 'npm install --omit-lockfile-registry-resolved'],
];

/** A path from the root of the repository. */
const OWN_PATH =
  /(?<![\w./-])(?:bench|deploy|docs|examples|faults|packaging|src|test|tools)\/[\w./-]+\.(?:c?js|css|html|json|md|mjs|py|sql|ts|yaml)\b/g;

type Manifest = Partial<
  Record<'dependencies' | 'devDependencies' | 'optionalDependencies', Record<string, string>>
>;

interface Engines {
  engines?: { node: string };
}

function read(file: string): string {
  return readFileSync(path.join(ROOT, file), 'utf8');
}

function ownFiles(): string[] {
  const patterns = ['**/*.{css,html,js,json,lua,md,mjs,py,sql,ts,yml}', '.{ci,github}/**/*'];
  return globSync(patterns, { cwd: ROOT, exclude: file => NOT_OURS.includes(path.basename(file)) })
    .filter(file => statSync(path.join(ROOT, file)).isFile())
    .map(file => file.replaceAll(path.sep, '/'));
}

const MANIFEST: Manifest = JSON.parse(read('package.json'));
const RUNTIME = Object.keys(MANIFEST.dependencies!);
const TESTS: Manifest = JSON.parse(read('test/package.json'));
const PACKAGING: Manifest = JSON.parse(read('packaging/compiler/package.json'));
/** The dependencies of the service, of a build and of the tests, with their versions. */
const DEPENDENCIES = { ...MANIFEST.dependencies, ...MANIFEST.devDependencies };
Object.assign(DEPENDENCIES, PACKAGING.dependencies, TESTS.dependencies, TESTS.optionalDependencies);

test('no file has banned text', () => {
  const findings = ownFiles().flatMap(file =>
    BANNED.filter(([files, text]) => file !== SELF && files.test(file) && text.test(read(file))).map(
      ([, text, instead]) => `${file}: ${text.exec(read(file))![0]}; instead: ${instead}`,
    ),
  );
  assert.deepEqual(findings, []);
});

test('each file that a text names is there', () => {
  const missing = ownFiles().flatMap(file =>
    [...read(file).matchAll(OWN_PATH)]
      .filter(([name]) => !existsSync(path.join(ROOT, name)))
      .map(([name]) => `${file}: ${name}`),
  );
  assert.deepEqual(missing, []);
});

test('the reading lists have the core and the SQLite engine, and each file after those that it uses', () => {
  const [, first = ''] = read('ARCHITECTURE.md').split('\n## Why a 200 is true\n');
  const lists = first.split('\n## ')[0]! + read('docs/reading.md');
  const items = lists.match(/^\d+\. .*(?:\n {3,4}.*)*/gm) ?? [];
  const listed = items.flatMap(item => {
    const [folder = '', ...names] = [...item.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
    return names.map(name => path.posix.join(folder, name));
  });
  const missing = globSync(['src/core/**/*.ts', 'src/engines/sqlite/*.ts'], { cwd: ROOT })
    .map(file => file.replaceAll(path.sep, '/'))
    .filter(file => !listed.includes(file));
  assert.deepEqual(missing, []);
  const table = [...lists.matchAll(/^\| (`src\/[^|]*) \|/gm)];
  const reliedOn = table.flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!));
  const used = listed.flatMap((file, index) =>
    [...read(file).matchAll(/ from '(\.[^']+)'/g)].map(([, name]) => {
      return { file, index, used: path.posix.join(path.posix.dirname(file), name!) };
    }),
  );
  const isKnown = (each: (typeof used)[number]): boolean =>
    reliedOn.includes(each.used) || listed.slice(0, each.index).includes(each.used);
  assert.deepEqual(
    used.filter(each => !isKnown(each)).map(each => `${each.file} uses ${each.used}`),
    [],
  );
  const names = used.map(each => each.used);
  assert.deepEqual(
    reliedOn.filter(name => !names.includes(name)),
    [],
  );
});

test('each dependency has an exact version, and a row in docs/dependencies.md', () => {
  for (const [name, version] of Object.entries(DEPENDENCIES))
    assert.match(version, /^[0-9]+\.[0-9]+\.[0-9]+(?:-[\w.]+)?$/, name);
  const [, service = '', development = ''] = read('docs/dependencies.md').split(/^## /m);
  const namesIn = (section: string) => [...section.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name!);
  const others = Object.keys(DEPENDENCIES).filter(name => !RUNTIME.includes(name));
  assert.deepEqual(namesIn(service).sort(), RUNTIME.toSorted());
  assert.deepEqual(namesIn(development).sort(), others.sort());
});

test('development, the checks and the workflow use one version of Node, and the same commands', () => {
  assert.equal(read('.node-version').trim(), MANIFEST.devDependencies!.node!.split('.')[0]);
  for (const name of ['.ci/run', '.github/workflows/test.yml'])
    assert.match(read(name), /npm ci\n.*npm test\n$/, name);
});

test('npm ci warns of no package on the Node that README.md asks for', () => {
  const [, asked] = /with Node (\S+) or later/.exec(read('README.md'))!;
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Engines> };
  assert.deepEqual(
    Object.entries(packages).filter(([, { engines }]) => !acceptsLater(engines?.node, asked!)),
    [],
  );
});

/** Whether a range of versions, such as `^16 || >=18.1`, has a lower limit that is not above a version. */
function acceptsLater(range: string | undefined, version: string): boolean {
  if (range === undefined) return true;
  const limits = [...range.matchAll(/>= ?([0-9.]+)/g)].map(([, limit]) => limit!);
  return limits.some(limit => limit.localeCompare(version, 'en', { numeric: true }) <= 0);
}

for (const lockFile of [
  'package-lock.json',
  'packaging/compiler/package-lock.json',
  'test/package-lock.json',
])
  test(`${lockFile} has the packages of all platforms, without which npm ci fails`, () => {
    const { packages } = JSON.parse(read(lockFile)) as { packages: Record<string, Manifest> };
    const optional = Object.values(packages).flatMap(each => Object.keys(each.optionalDependencies ?? {}));
    assert.ok(optional.length > 0);
    const missing = optional.filter(name => packages[`node_modules/${name}`] === undefined);
    assert.deepEqual(missing, []);
  });
