import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { suite, test } from 'node:test';
import {
  bannedText,
  dependenciesDocument,
  dependencyRows,
  exactVersions,
  FILE_LINES_MAX,
  FILE_LINES_MEDIAN_MAX,
  fileLengths,
  fileNames,
  importCycles,
  importDirections,
  limitsInUse,
  markdownLinks,
  partsDocument,
  type RepositoryFile,
  type Rule,
  readmeCommands,
  runtimeDependencies,
} from './repository-rules.ts';

/** Files that a rule is not for, each with the reason. */
const EXCEPTIONS: { rule: Rule; path: string; why: string }[] = [
  { rule: bannedText, path: 'test/repository.test.ts', why: 'the broken samples below' },
  { rule: bannedText, path: 'test/repository-rules.ts', why: 'the patterns themselves' },
];

const RULES: Rule[] = [
  bannedText,
  dependenciesDocument,
  exactVersions,
  fileLengths,
  fileNames,
  importCycles,
  importDirections,
  limitsInUse,
  markdownLinks,
  partsDocument,
  readmeCommands,
  runtimeDependencies,
];

const ROOT = path.resolve(import.meta.dirname, '..');
const files = repositoryFiles();

suite('this repository', () => {
  for (const rule of RULES) {
    test(`keeps the rule ${rule.name}`, () => {
      const excepted = EXCEPTIONS.filter(exception => exception.rule === rule).map(
        exception => exception.path,
      );
      const findings = rule(files).filter(finding => !excepted.some(each => finding.startsWith(`${each}:`)));
      assert.ok(findings.length === 0, `\n${findings.join('\n')}`);
    });
  }

  test('has the files that its exceptions are for, and needs each of them', () => {
    for (const { rule, path: excepted } of EXCEPTIONS) {
      assert.ok(
        rule(files).some(finding => finding.startsWith(`${excepted}:`)),
        `${excepted} keeps ${rule.name}; remove the exception`,
      );
    }
  });

  test('names the licence of each dependency as the dependency itself does', () => {
    for (const { name, licence, line } of dependencyRows(files)) {
      const manifest = ['', 'test']
        .map(folder => path.join(ROOT, folder, 'node_modules', name, 'package.json'))
        .find(each => existsSync(each));
      // An optional one is not installed on every platform.
      if (manifest === undefined) continue;
      assert.equal(
        licence,
        JSON.parse(readFileSync(manifest, 'utf8')).license,
        `docs/dependencies.md:${line}: ${name}`,
      );
    }
  });
});

/** The table of folders, as it stands. */
const FOLDERS = files.find(({ path: each }) => each === 'ARCHITECTURE.md')!.text;

/** A rule, a sample that keeps it, and samples that break it with the finding that each must give. */
const SAMPLES: {
  rule: Rule;
  sound: RepositoryFile[];
  broken: [files: RepositoryFile[], finding: RegExp][];
}[] = [
  {
    rule: importDirections,
    sound: [
      file(
        'src/http/server.ts',
        "import type { Store } from '../store/plant-store.ts';\nimport 'fastify';\n",
      ),
      file('src/cli/serve.ts', "import { x } from '../service.ts';\nimport { y } from './main.ts';\n"),
      file(
        'src/auth/token.ts',
        "// import { x } from '../store/x.ts';\nconst text = \"from '../store/x.ts'\";\n",
      ),
      file('test/any.test.ts', "import { x } from '../src/store/sqlite/x.ts';\n"),
    ],
    broken: [
      [
        [file('src/contract/a.ts', "import fs from 'node:fs';\n")],
        /^src\/contract\/a\.ts:1: imports node:fs;/,
      ],
      [
        [file('src/contract/a.ts', "import { x } from '../auth/b.ts';\n")],
        /:1: imports \.\.\/auth\/b\.ts; .* nothing/,
      ],
      [[file('src/client/a.ts', "import { x } from 'undici';\n")], /:1: imports undici/],
      [[file('src/auth/a.ts', "\nexport { x } from '../store/b.ts';\n")], /:2: imports \.\.\/store\/b\.ts/],
      [[file('src/store/a.ts', "import {\n  x,\n} from '../http/b.ts';\n")], /:1: imports \.\.\/http\/b\.ts/],
      [[file('src/store/a.ts', "import '../auth/b.ts';\n")], /:1: imports/],
      [[file('src/store/s/a.ts', "\nnew URL('../../cli/b.ts', import.meta.url);\n")], /:2: imports/],
      [
        [file('src/http/a.ts', "import { type S } from '../store/plant-store.ts';\n")],
        /plant-store\.ts as a type/,
      ],
      [[file('src/http/a.ts', "import type { S } from '../store/sqlite/b.ts';\n")], /:1: imports/],
      [[file('src/ops/a.ts', "const { x } = await import('../http/b.ts');\n")], /:1: imports/],
      [[file('src/service.ts', "import { x } from './cli/b.ts';\n")], /:1: imports/],
      [[file('src/cli/a.ts', "import { x } from '../http/b.ts';\n")], /:1: imports/],
      [[file('src/cli/a.ts', "import { x } from '../../test/b.ts';\n")], /:1: imports/],
      [[file('src/garden/a.ts', '')], /^src\/garden\/a\.ts:1: in no part of src/],
    ],
  },
  {
    rule: importCycles,
    sound: [
      file('src/a.ts', "import './b.ts';\nimport './c.ts';\n"),
      file('src/b.ts', "import './c.ts';\n"),
      file('src/c.ts', ''),
    ],
    broken: [
      [[file('src/a.ts', "import './a.ts';\n")], /src\/a\.ts → src\/a\.ts/],
      [
        [
          file('src/a.ts', "import './b.ts';\n"),
          file('src/b.ts', "\nimport type { C } from './c.ts';\n"),
          file('src/c.ts', "export { x } from './b.ts';\n"),
        ],
        /^src\/c\.ts:1: closes the circle src\/b\.ts → src\/c\.ts → src\/b\.ts;/,
      ],
    ],
  },
  {
    rule: bannedText,
    sound: [
      file(
        'src/store/a.ts',
        '// lastInsertRowid, console.log and process.env are not used\nprocess.hrtime();\n',
      ),
      file('src/store/b.ts', 'JSON.parse(text.slice(a, b));\n/* parseInt(x) */\n'),
      file('src/store/c.ts', "const sql = 'INSERT INTO plant_revision'; // UPDATE plant_revision\n"),
      file('src/cli/a.ts', "console.log(process.env.HOME, 'not ok 1 # TODO');\n"),
      file('test/a.test.ts', '// @ts-expect-error\nskipSpace(); parseInt(x); JSON.parse(x, y);\n'),
      file(
        'README.md',
        `https://example.org/home/work and .${['', 'work', 'x'].join('/')} and https://docs.npmjs.com/\n`,
      ),
      file('package-lock.json', '{ "integrity": "sha512-x" }\n'),
    ],
    broken: [
      [
        [file('src/store/a.ts', '\nconst home = process.env.HOME;\n')],
        /^src\/store\/a\.ts:2: process\.env; take a/,
      ],
      [[file('src/http/a.ts', 'process.exit(1);\n')], /process\.exit/],
      [[file('src/http/a.ts', 'process.exitCode = 1;\n')], /process\.exitCode/],
      [[file('src/service.ts', "process.on('SIGTERM', stop);\n")], /process\.on/],
      [[file('src/service.ts', "import { env } from 'node:process';\n")], /'node:process'/],
      [[file('src/store/a.ts', "console.log('x');\n")], /console\.log/],
      [[file('src/store/a.ts', 'const { lastInsertRowid } = run();\n')], /2\^53/],
      [[file('src/http/a.ts', 'JSON.parse(decode(text), reviver);\n')], /jsonMembers/],
      [[file('src/http/a.ts', 'JSON.parse(\n  text,\n  (key, value) => value,\n);\n')], /jsonMembers/],
      [[file('src/cli/a.ts', 'Number.parseInt(text, 10);\n')], /12abc/],
      [[file('src/cli/a.ts', 'parseFloat(text);\n')], /12abc/],
      [[file('src/store/a.ts', "if (error.message.includes('UNIQUE')) return;\n")], /their code/],
      [[file('src/store/a.ts', "if (error.message === 'locked') return;\n")], /their code/],
      [[file('src/store/a.ts', "const sql = 'update plant_revision set name = ?';\n")], /append a revision/],
      [[file('src/store/schema/2.sql', 'DELETE\nFROM plant_revision;\n')], /^src\/store\/schema\/2\.sql:1: /],
      [
        [file('src/store/a.ts', "const sql = 'INSERT OR REPLACE INTO plant_revision';\n")],
        /append a revision/,
      ],
      [[file('src/auth/a.ts', 'Math.random();\n')], /node:crypto/],
      [[file('test/a.test.ts', "test.only('x');\n")], /run the test/],
      [[file('test/a.test.ts', "suite.skip('x');\n")], /run the test/],
      [[file('test/a.test.ts', 'context.todo();\n')], /run the test/],
      [[file('test/a.test.ts', "test('x', { skip: true }, () => {});\n")], /run the test/],
      [[file('src/cli/a.ts', '// @ts-ignore\n')], /mend what/],
      [[file('test/a.test.ts', '// biome-ignore lint: no\n')], /mend what/],
      [[file('src/cli/a.ts', '// @ts-expect-error\n')], /mend the type/],
      [[file('bench/a.ts', '/* FIXME */\n')], /do it/],
      [[file('src/cli/a.ts', '// TODO\n')], /do it/],
      [
        [file('README.md', `Run it in ${['', 'work', 'main'].join('/')}.\n`)],
        /^README\.md:1: .* one machine/,
      ],
      [[file('bench/a.ts', "\n\nread('/home/me/plants.csv');\n")], /^bench\/a\.ts:3: .* one machine/],
      [[file('.npmrc', 'registry=https://packages.example.org\n')], /^\.npmrc:1: .* package registry/],
      [[file('docs/a.md', 'see https://registry.npmjs.org/ajv\n')], /package registry/],
      [
        [file('package-lock.json', '{\n"resolved": "https://example.org/a.tgz" }\n')],
        /^package-lock\.json:2: .*omit/,
      ],
    ],
  },
  {
    rule: fileNames,
    sound: [
      file('src/store/token-table.ts', ''),
      file('src/contract/plant.ts', ''),
      file('docs/index.md', ''),
    ],
    broken: [
      [[file('src/store/index.ts', '')], /^src\/store\/index\.ts:1: a bag/],
      [[file('src/cli/utils.ts', '')], /a bag/],
      [[file('src/types.d.ts', '')], /a bag/],
      [[file('src/http/helpers/answer.ts', '')], /a bag/],
      [[file('test/common.ts', '')], /a bag/],
      [[file('bench/misc.js', '')], /a bag/],
    ],
  },
  {
    rule: fileLengths,
    sound: [
      file('src/a.ts', lines(FILE_LINES_MAX)),
      file('src/b.ts', lines(FILE_LINES_MEDIAN_MAX)),
      file('src/c.ts', ''),
      file('test/a.test.ts', lines(FILE_LINES_MAX * 2)),
    ],
    broken: [
      [
        [file('bin/a.js', lines(FILE_LINES_MAX + 1)), file('src/b.ts', ''), file('src/c.ts', '')],
        /^bin\/a\.js:401: more than 400/,
      ],
      [
        [file('src/a.css', lines(FILE_LINES_MAX + 1)), file('src/b.ts', ''), file('src/c.ts', '')],
        /^src\/a\.css:401: more than 400/,
      ],
      [
        [file('src/a.ts', ''), file('src/b.ts', lines(FILE_LINES_MEDIAN_MAX + 1))],
        /^src\/b\.ts:201: the median/,
      ],
    ],
  },
  {
    rule: limitsInUse,
    sound: [
      file('src/contract/limits.ts', 'export const WAIT_MS = 1;\n'),
      file('src/http/a.ts', "import { WAIT_MS } from '../contract/limits.ts';\n"),
    ],
    broken: [
      [
        [
          file('src/contract/limits.ts', '\nexport const WAIT_MS = 1;\nrelation(WAIT_MS < 2);\n'),
          file('src/a.ts', 'WAIT_MS_MAX'),
        ],
        /^src\/contract\/limits\.ts:2: nothing keeps to WAIT_MS;/,
      ],
    ],
  },
  {
    rule: runtimeDependencies,
    sound: [
      file('package.json', '{"dependencies":{"a":"1.0.0","@b/c":"1.0.0"},"devDependencies":{"d":"1.0.0"}}'),
      file('src/a.ts', "import 'a';\nimport type { C } from '@b/c/deep';\nimport 'node:fs';\n"),
      file('test/a.test.ts', "import 'd';\n"),
    ],
    broken: [
      [[file('package.json', '{"dependencies":{"a":"1.0.0"}}')], /^package\.json:1: a is imported nowhere/],
      [
        [
          file('package.json', '{"devDependencies":{"@b/c":"1.0.0"}}'),
          file('src/a.ts', "\nimport '@b/c/deep';\n"),
        ],
        /^src\/a\.ts:2: imports @b\/c;/,
      ],
    ],
  },
  {
    rule: exactVersions,
    sound: [file('package.json', '{"dependencies":{"a":"1.2.3"},"devDependencies":{"b":"1.0.0-rc.1"}}')],
    broken: [
      [[file('package.json', '{"dependencies":{"a":"^1.2.3"}}')], /a \^1\.2\.3; npm install --save-exact a/],
      [[file('package.json', '{"devDependencies":{"a":"latest"}}')], /a latest/],
    ],
  },
  {
    rule: dependenciesDocument,
    sound: [
      file('package.json', '{"dependencies":{"a":"1.0.0"},"devDependencies":{"@b/c":"1.0.0"}}'),
      file(
        'docs/dependencies.md',
        '| Name | Why | L | To | R |\n|---|---|---|---|---|\n| `a` | x | MIT | run | x |\n| `@b/c` | x | MIT | develop | x |\n',
      ),
    ],
    broken: [
      [[file('package.json', '{"devDependencies":{"a":"1.0.0"}}')], /a has no row/],
      [
        [file('package.json', '{}'), file('docs/dependencies.md', '\n| `a` | x | MIT | run | x |\n')],
        /^docs\/dependencies\.md:2: a is not in package\.json/,
      ],
      [
        [
          file('package.json', '{"devDependencies":{"a":"1.0.0"}}'),
          file('docs/dependencies.md', '| `a` | x | MIT | run | x |\n'),
        ],
        /^docs\/dependencies\.md:1: a is needed to develop/,
      ],
    ],
  },
  {
    rule: markdownLinks,
    sound: [
      file(
        'README.md',
        '# A `b`, c!\n# Twice\n# Twice\n[1](docs/a.md#-one) [2](#a-b-c) [3](#twice-1) [4](docs)\n',
      ),
      file(
        'docs/a.md',
        '## § One\n[1](../README.md "t") [2](https://x.org/y)\n`[3](no.md)`\n```\n[4](no.md)\n```\n',
      ),
      file('docs/b.md', '# One\n[1](a.md#-one)\n[a]: ./a.md\n<img src="../README.md">\n'),
    ],
    broken: [
      [[file('README.md', '\n[1](docs/no.md)\n')], /^README\.md:2: docs\/no\.md leads to no file/],
      [[file('docs/a.md', '[1](b.md)\n'), file('b.md', '')], /b\.md leads to no file/],
      [[file('docs/a.md', '[a]: no.md\n')], /no\.md leads to no file/],
      [[file('docs/a.md', '<img src="no.png">\n')], /no\.png leads to no file/],
      [[file('README.md', '# One\n[1](#two)\n')], /#two leads to no heading/],
      [[file('README.md', '[1](a.ts#L5)\n'), file('a.ts', '')], /lines move/],
    ],
  },
  {
    rule: partsDocument,
    sound: [file('ARCHITECTURE.md', FOLDERS)],
    broken: [
      [[file('ARCHITECTURE.md', '')], /^ARCHITECTURE\.md:1: src\/auth has no row/],
      [
        [file('ARCHITECTURE.md', FOLDERS.replace('| nothing |', '| auth |'))],
        /^ARCHITECTURE\.md:[0-9]+: src\/contract may import auth; .*: nothing$/,
      ],
      [
        [file('ARCHITECTURE.md', FOLDERS.replace('as `src/store`', 'contract'))],
        /: src\/store\/copy may import contract; .*: as `src\/store`$/,
      ],
      [
        [file('ARCHITECTURE.md', FOLDERS.replace('src/cli`', 'src/garden`'))],
        /: src\/garden is no part of src/,
      ],
    ],
  },
  {
    rule: readmeCommands,
    sound: [
      file('package.json', '{"scripts":{"start":"x","test":"x"}}'),
      file('README.md', 'npm ci && npm start\nnpm ci && npm test\n'),
    ],
    broken: [
      [[file('package.json', '{"scripts":{"start":"x","test":"x"}}')], /does not show: npm ci && npm start/],
      [
        [
          file('package.json', '{"scripts":{"start":"x","test":"x"}}'),
          file('README.md', 'npm ci && npm start\n'),
        ],
        /does not show: npm ci && npm test/,
      ],
      [
        [file('README.md', 'npm ci && npm start\nnpm ci && npm test\n'), file('package.json', '{}')],
        /no script start/,
      ],
    ],
  },
];

suite('a rule finds what breaks it, and nothing else', () => {
  for (const { rule, sound, broken } of SAMPLES) {
    test(`${rule.name} is content with a sound sample`, () => {
      assert.deepEqual(rule(sound), []);
    });
    for (const [sample, finding] of broken) {
      test(`${rule.name} finds a fault in ${sample[0]!.path}: ${finding.source}`, () => {
        assert.ok(
          rule(sample).some(each => finding.test(each)),
          `found only: ${rule(sample).join('\n') || 'nothing'}`,
        );
      });
    }
  }

  test('every rule has samples', () => {
    assert.deepEqual(SAMPLES.map(({ rule }) => rule.name).sort(), RULES.map(rule => rule.name).sort());
  });
});

function file(filePath: string, text: string): RepositoryFile {
  return { path: filePath, text };
}

function lines(count: number): string {
  return '\n'.repeat(count);
}

/** Every text file that is in git or would be added to it. */
function repositoryFiles(): RepositoryFile[] {
  return repositoryPaths()
    .filter(each => statSync(path.join(ROOT, each), { throwIfNoEntry: false })?.isFile())
    .map(each => ({ path: each, bytes: readFileSync(path.join(ROOT, each)) }))
    .filter(({ bytes }) => isUtf8(bytes) && !bytes.includes(0))
    .map(({ path: each, bytes }) => ({ path: each, text: bytes.toString() }));
}

/** As git lists them; in a copy without git, all that is not a dependency or data. */
function repositoryPaths(): string[] {
  try {
    const options = [
      '-c',
      'safe.directory=*',
      'ls-files',
      '-z',
      '--cached',
      '--others',
      '--exclude-standard',
    ];
    const listed = execFileSync('git', options, {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const paths = listed.split('\0');
    if (paths.includes('package.json')) return paths;
  } catch {
    // No git here, or no repository: look for ourselves.
  }
  return readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
    .map(each => each.replaceAll(path.sep, '/'))
    .filter(each => !/(?:^|\/)(?:node_modules|\.git)\/|^(?:data|dist|executable)\/|\.log$/.test(each));
}

for (const lockFile of ['package-lock.json', 'test/package-lock.json'])
  test(`${lockFile} has every package of every platform, without which npm ci refuses it`, () => {
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
