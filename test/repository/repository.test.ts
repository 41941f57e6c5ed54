import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { suite, test } from 'node:test';
import {
  bannedText,
  importDirections,
  importsOf,
  markdownLinks,
  type RepositoryFile,
  type Rule,
  readableComments,
  SOURCE,
} from './repository-rules.ts';

/** Files with banned text: the patterns, and the broken samples below. */
const EXCEPTIONS = /^test\/repository\/repository(?:\.test|-rules)\.ts:/;

const ROOT = path.resolve(import.meta.dirname, '../..');
const files = repositoryFiles();

interface Manifest {
  license?: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

function readManifest(file: string): Manifest {
  return JSON.parse(readFileSync(path.join(ROOT, file), 'utf8'));
}

const MANIFEST = readManifest('package.json');
const RUNTIME = Object.keys(MANIFEST.dependencies!);
/** The dependencies of the service and of the tests, with their versions. */
const DEPENDENCIES: Record<string, string> = Object.assign(
  {},
  ...[MANIFEST, readManifest('test/package.json')].flatMap(each => [
    each.dependencies,
    each.devDependencies,
    each.optionalDependencies,
  ]),
);
const SOURCES = files.filter(file => SOURCE.test(file.path));

suite('this repository', () => {
  for (const rule of [bannedText, readableComments, importDirections, markdownLinks]) {
    test(`follows the rule ${rule.name}`, () => {
      const findings = rule(files).filter(finding => !EXCEPTIONS.test(finding));
      assert.ok(findings.length === 0, `\n${findings.join('\n')}`);
    });
  }

  test('depends on exact versions, so that users install the tested versions', () => {
    for (const [name, version] of Object.entries(DEPENDENCIES))
      assert.match(version, /^[0-9]+\.[0-9]+\.[0-9]+(?:-[\w.]+)?$/, name);
  });

  test('names one version of Node for development, and one pair of commands', () => {
    const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');
    assert.equal(read('.node-version').trim(), MANIFEST.devDependencies!.node!.split('.')[0]);
    for (const name of ['.ci/run', '.github/workflows/test.yml'])
      assert.match(read(name), /npm ci\n.*npm test\n$/, name);
  });

  test('has each mutant once in its source, so that it can be run', () => {
    const textOf = new Map(files.map(file => [file.path, file.text]));
    const lists = files.filter(file => /^test\/mutants\/.*\.json$/.test(file.path));
    const mutants = lists.flatMap(list => JSON.parse(list.text) as { file: string; from: string }[]);
    assert.ok(mutants.length > 100);
    const outdated = mutants.filter(({ file, from }) => textOf.get(file)?.split(from).length !== 2);
    assert.deepEqual(outdated, []);
  });

  test('imports every dependency of the service in src or bin', () => {
    const specifiers = SOURCES.flatMap(importsOf).map(({ specifier }) => `${specifier}/`);
    const unused = RUNTIME.filter(name => !specifiers.some(each => each.startsWith(`${name}/`)));
    assert.deepEqual(unused, []);
  });

  test('has a row in docs/dependencies.md for every dependency, with its licence and what needs it', () => {
    const document = readFileSync(path.join(ROOT, 'docs/dependencies.md'), 'utf8');
    const rows = [...document.matchAll(/^\| `([^`]+)` \|[^|]+\| ([^|]+) \| ([^|]+) \|[^|]+\|$/gm)];
    assert.deepEqual(rows.map(([, name]) => name).sort(), Object.keys(DEPENDENCIES).sort());
    for (const [, name = '', licence, neededTo] of rows) {
      assert.equal(neededTo, RUNTIME.includes(name) ? 'run' : 'develop', name);
      const installed = ['', 'test/']
        .map(folder => `${folder}node_modules/${name}/package.json`)
        .find(each => existsSync(path.join(ROOT, each)));
      // An optional dependency is not installed on every platform.
      if (installed !== undefined) assert.equal(licence, readManifest(installed).license, name);
    }
  });

  test('has no file with a general name, such as utils', () => {
    const generalName =
      /^(?:src|bin|test|bench|faults|packaging)\/(?:.*\/)?(?:index|utils?|helpers?|types?|common|misc|shared|interfaces?)(?:\/|\.(?:d\.)?[cm]?[jt]s$)/;
    assert.deepEqual(
      files.filter(file => generalName.test(file.path)).map(file => file.path),
      [],
    );
  });

  test('uses every limit of a limits.ts in another file', () => {
    const unused = SOURCES.filter(file => file.path.endsWith('/limits.ts')).flatMap(limits =>
      [...limits.text.matchAll(/^export const (\w+)/gm)]
        .map(([, name]) => new RegExp(`\\b${name}\\b`))
        .filter(name => !SOURCES.some(file => file !== limits && name.test(file.text))),
    );
    assert.deepEqual(unused, []);
  });
});

/** Each rule, with files that follow it, and files that break it with the expected finding. */
const SAMPLES: {
  rule: Rule;
  /** Further files that the rule reads. */
  beside?: Record<string, string>;
  sound: Record<string, string>;
  broken: [files: Record<string, string>, finding: RegExp][];
}[] = [
  {
    rule: importDirections,
    beside: { 'ARCHITECTURE.md': files.find(({ path: each }) => each === 'ARCHITECTURE.md')!.text },
    sound: {
      'src/http/server.ts': "import type { Store } from '../store/plant-store.ts';\nimport 'pg';\n",
      'src/cli/serve.ts': "import { x } from '../service.ts';\nimport { y } from './main.ts';\n",
      'src/auth/token.ts': "// import { x } from '../store/x.ts';\nconst text = \"from '../store/x.ts'\";\n",
      'test/any.test.ts': "import { x } from '../src/store/sqlite/x.ts';\nimport './harness/y.ts';\n",
      'faults/any.ts': "import { x } from '../test/harness/x.ts';\n",
      'bench/any.ts': "import '../src/version.ts';\nimport '../bin/x.js';\nimport '../test/harness/x.ts';\n",
      'bench/floors/any.ts': "import { x } from '../../test/harness/x.ts';\n",
      'bench/peers/any.js': "import { x } from '../../test/x.ts';\n",
      'examples/any.js': "import { PlantStore } from 'plant-store-client';\n",
    },
    broken: [
      [{ 'src/contract/a.ts': "import fs from 'node:fs';\n" }, /^src\/contract\/a\.ts:1: imports node:fs;/],
      [{ 'src/auth/a.ts': "\nexport { x } from '../store/b.ts';\n" }, /:2: imports \.\.\/store\/b\.ts/],
      [{ 'src/store/a.ts': "import '../auth/b.ts';\n" }, /:1: imports/],
      [{ 'src/store/s/a.ts': "\nnew URL('../../cli/b.ts', import.meta.url);\n" }, /:2: imports/],
      [{ 'src/http/a.ts': "import { type S } from '../store/plant-store.ts';\n" }, /-store\.ts` as a type/],
      [{ 'src/ops/a.ts': "const { x } = await import('../auth/b.ts');\n" }, /:1: imports/],
      [{ 'src/cli/a.ts': "import {\n  x,\n} from '../../test/b.ts';\n" }, /:1: imports/],
      [{ 'src/garden/a.ts': '' }, /^src\/garden\/a\.ts:1: has no row/],
      [{ 'test/harness/a.ts': "import '../b.ts';\n" }, /test\/harness may import src;/],
      [{ 'bench/a.ts': "import '../test/b.ts';\n" }, /bench may import src, bin, test\/harness;/],
      [{ 'bench/a.ts': "import '../faults/b.ts';\n" }, /imports \.\.\/faults\/b\.ts; bench may/],
      [{ 'bench/a.ts': "import '../packaging/b.ts';\n" }, /imports \.\.\/packaging\/b\.ts; bench may/],
      [{ 'bench/floors/a.ts': "import '../../test/b.ts';\n" }, /^bench\/floors\/a\.ts:1: imports/],
      [{ 'src/http/a.ts': "import '../../bench/b.ts';\n" }, /src\/http may import contract/],
      [{ 'test/harness/a.ts': "import '../../bench/b.ts';\n" }, /test\/harness may import src;/],
      [{ 'packaging/a.ts': "import '../src/service.ts';\n" }, /packaging may import nothing;/],
      [{ 'examples/a.js': "import '../src/service.ts';\n" }, /examples may import nothing;/],
      [{ 'faults/a.ts': "import '../bench/b.ts';\n" }, /faults may import src, test\/harness;/],
    ],
  },
  {
    rule: bannedText,
    sound: {
      'src/store/a.ts': 'process.hrtime();\n',
      'src/cli/a.ts': 'console.log(process.env.HOME);\n',
      'test/a.test.ts': '// @ts-expect-error\nskipSpace(); parseInt(x);\n',
      'README.md': `https://example.org/home/work and .${['', 'work', 'x'].join('/')} and https://docs.npmjs.com/\n`,
      'package-lock.json': '{ "integrity": "sha512-x" }\n',
      'docs/a.md': 'Look up the token. Connection refused. HEAD /plants. Header. <head>\n',
    },
    broken: [
      [{ 'docs/a.md': '\nThe service refuses it.\n' }, /^docs\/a\.md:2: refuses; use .*: reject/],
      [{ 'packages/a/README.md': 'It refuses it.\n' }, /refuses; use .*: reject/],
      [{ 'src/a.ts': '// It looks for it.\n' }, /^src\/a\.ts:1: looks; use .*: look up/],
      [{ 'README.md': 'the head of a request\n' }, /head; use .*: header section/],
      [{ 'test/a.ts': 'const CLOSE_WAIT_MS = 1;\n' }, /_WAIT_MS; use .*: timeout/],
      [{ 'src/a.ts': '\nconst home = process.env.HOME;\n' }, /^src\/a\.ts:2: process\.env; take a/],
      [{ 'src/service.ts': "import { env } from 'node:process';\n" }, /'node:process'/],
      [{ 'src/cli/a.ts': 'Number.parseInt(text, 10);\n' }, /12abc/],
      [{ 'src/store/a.ts': "if (error.message.includes('UNIQUE')) return;\n" }, /check the code/],
      [{ 'src/auth/a.ts': 'Math.random();\n' }, /node:crypto/],
      [{ 'test/a.test.ts': "test.only('x');\n" }, /run the test/],
      [{ 'test/a.test.ts': "test('x', { skip: true }, () => {});\n" }, /run the test/],
      [{ 'test/a.test.ts': '// biome-ignore lint: no\n' }, /fix the finding/],
      [{ 'src/cli/a.ts': '// @ts-expect-error\n' }, /fix the type/],
      [{ 'bench/a.ts': '/* FIXME */\n' }, /do it/],
      [{ 'bench/a.ts': "\n\nread('/home/me/plants.csv');\n" }, /^bench\/a\.ts:3: .* one machine/],
      [{ '.npmrc': 'registry=https://packages.example.org\n' }, /^\.npmrc:1: .* package registry/],
      [{ 'package-lock.json': '"resolved": "https://example.org/a.tgz"\n' }, /^package-lock\.json:1: .*omit/],
    ],
  },
  {
    rule: readableComments,
    sound: { 'src/a.ts': '// One sentence. Another one.\nconst a = 1;\n' },
    broken: [
      [{ 'src/a.ts': `// ${'word '.repeat(20)}.\n` }, /^src\/a\.ts:1: 104 columns/],
      [{ 'src/a.ts': `\n// ${'a '.repeat(13)}\n// ${'b '.repeat(13)}\n` }, /^src\/a\.ts:2: .* over 25 words/],
    ],
  },
  {
    rule: markdownLinks,
    sound: {
      'README.md': '# A `b`, c!\n# Twice\n# Twice\n[1](docs/a.md#-one) [2](#a-b-c) [3](#twice-1) [4](docs)\n',
      'docs/a.md':
        '## § One\n[1](../README.md "t") [2](https://x.org/y)\n`[3](no.md)`\n```\n[4](no.md)\n```\n',
      'docs/b.md': '# One\n[1](a.md#-one)\n[a]: ./a.md\n<img src="../README.md">\n',
    },
    broken: [
      [{ 'README.md': '\n[1](docs/no.md)\n' }, /^README\.md:2: docs\/no\.md leads to no file/],
      [{ 'docs/a.md': '[a]: no.md\n' }, /no\.md leads to no file/],
      [{ 'docs/a.md': '<img src="no.png">\n' }, /no\.png leads to no file/],
      [{ 'README.md': '# One\n[1](#two)\n' }, /#two leads to no heading/],
      [{ 'README.md': '[1](a.ts#L5)\n', 'a.ts': '' }, /#L5 leads to no heading/],
    ],
  },
];

suite('a rule finds violations, and nothing else', () => {
  const filesOf = (texts: Record<string, string>): RepositoryFile[] =>
    Object.entries(texts).map(([each, text]) => ({ path: each, text }));
  for (const { rule, beside = {}, sound, broken } of SAMPLES) {
    test(rule.name, () => {
      assert.deepEqual(rule(filesOf({ ...beside, ...sound })), []);
      for (const [sample, finding] of broken) {
        const found = rule(filesOf({ ...beside, ...sample }));
        assert.ok(
          found.some(each => finding.test(each)),
          `${JSON.stringify(sample)} finds only: ${found.join('\n') || 'nothing'}`,
        );
      }
    });
  }
});

/** All files that git tracks or would add. A binary one has an empty text, for links to it. */
function repositoryFiles(): RepositoryFile[] {
  return repositoryPaths()
    .filter(each => statSync(path.join(ROOT, each), { throwIfNoEntry: false })?.isFile())
    .map(each => ({ path: each, bytes: readFileSync(path.join(ROOT, each)) }))
    .map(({ path: each, bytes }) => ({
      path: each,
      text: isUtf8(bytes) && !bytes.includes(0) ? bytes.toString() : '',
    }));
}

/** The paths that git lists. In a copy without git: all files except dependencies and data. */
function repositoryPaths(): string[] {
  const command = 'git -c safe.directory=* ls-files -z --cached --others --exclude-standard';
  const [git = '', ...args] = command.split(' ');
  const { stdout } = spawnSync(git, args, { cwd: ROOT, encoding: 'utf8' });
  // A copy may be inside the repository of another project, which does not track its files.
  const listed = stdout?.split('\0') ?? [];
  if (listed.includes('package.json')) return listed;
  return readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
    .map(each => each.replaceAll(path.sep, '/'))
    .filter(each => !/(?:^|\/)(?:node_modules|\.git|dist)\/|^(?:data|executable)\/|\.log$/.test(each));
}

for (const lockFile of ['package-lock.json', 'test/package-lock.json'])
  test(`${lockFile} has the packages of all platforms, without which npm ci fails`, () => {
    const { packages } = JSON.parse(readFileSync(path.join(ROOT, lockFile), 'utf8')) as {
      packages: Record<string, { optionalDependencies?: Record<string, string> }>;
    };
    const optional = Object.values(packages).flatMap(entry => Object.keys(entry.optionalDependencies ?? {}));
    assert.ok(optional.length > 0);
    assert.deepEqual(
      optional.filter(name => packages[`node_modules/${name}`] === undefined),
      [],
    );
  });
