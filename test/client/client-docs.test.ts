/** Compiles and runs the code blocks of the pages for people who write clients. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startTestService } from '../harness/running-service.ts';
import { testFolder } from '../harness/test-folder.ts';

const run = promisify(execFile);

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const COMPILER = join(ROOT, 'packaging/compiler/node_modules/typescript/bin/tsc');
const PACKAGES = ['openapi-fetch', 'openapi-typescript', 'typescript', '@hey-api', '.bin'];
/** The strict options of `tsc --init`. */
const STRICT = {
  target: 'es2024',
  lib: ['es2024', 'dom', 'dom.iterable'],
  module: 'nodenext',
  types: ['node'],
  typeRoots: [join(ROOT, 'node_modules/@types')],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  erasableSyntaxOnly: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  noEmit: true,
};

/** Makes the folder of a reader's program, in which the packages are installed. */
function programFolder(): string {
  const folder = testFolder();
  const client = join(folder, 'node_modules/plant-store-client');
  mkdirSync(client, { recursive: true });
  for (const name of PACKAGES)
    symlinkSync(join(ROOT, 'test/node_modules', name), join(folder, 'node_modules', name));
  // A link, since Node runs no TypeScript in node_modules.
  symlinkSync(join(ROOT, 'src/client/plant-store.ts'), join(client, 'plant-store.ts'));
  writeJson(join(client, 'package.json'), { type: 'module', exports: './plant-store.ts' });
  writeJson(join(folder, 'package.json'), { type: 'module' });
  return folder;
}

function writeJson(file: string, value: object): void {
  writeFileSync(file, JSON.stringify(value));
}

async function compile(folder: string, compilerOptions: object = STRICT): Promise<void> {
  writeJson(join(folder, 'tsconfig.json'), { compilerOptions });
  // The compiler writes faults to stdout, which the message of the error lacks.
  await run(process.execPath, [COMPILER, '-p', folder]).catch(({ stdout }) => assert.fail(stdout));
}

interface Block {
  /** The first file name in the paragraph before the block. */
  file: string | undefined;
  language: string;
  code: string;
}

function blocksOf(text: string): Block[] {
  return Array.from(text.matchAll(/^```([a-z]*)\n(.*?)^```$/gms), ({ 1: language, 2: code, index }) => {
    const before = text.slice(0, index).split('\n\n').at(-2);
    return { file: /`([\w.-]+\.ts)`/.exec(before ?? '')?.[1], language: language!, code: code! };
  });
}

function readDocument(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

const STORED_JSON =
  '{"id":"9007199254740993","name":"Monstera deliciosa","tag":"houseplant","revision":1,"outcome":"created"}\n';
/** What the programs of each document print. */
const OUTPUTS = {
  'docs/client.md': [
    'created plant 9007199254740995, revision 1\n',
    '1000 stored\n',
    '7597049000137840730n 2360040201619519176n\n',
    'expected revision 0, stored is 1\n',
    'create a new token\n',
  ],
  'packages/client/README.md': [STORED_JSON],
};

for (const [path, outputs] of Object.entries(OUTPUTS))
  test(`the programs of ${path} compile, and print what the page states, each with a new service`, async () => {
    const text = readDocument(path);
    const programs = blocksOf(text).filter(({ language }) => language !== 'text');
    assert.equal(programs.length, outputs.length);
    const folder = programFolder();
    const files = programs.map(({ code }, index) => {
      const file = join(folder, `program-${index}`);
      writeFileSync(`${file}.ts`, code);
      // The same code is JavaScript, too.
      writeFileSync(`${file}.mjs`, code);
      return `${file}.mjs`;
    });
    await compile(folder);
    for (const [index, file] of files.entries()) {
      await using service = await startTestService();
      const { stdout, stderr } = await run(process.execPath, [file], {
        env: { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token },
        timeout: 60_000,
      });
      assert.deepEqual([stdout, stderr], [outputs[index], '']);
    }
  });

const GENERATED = readDocument('docs/generated-clients.md');
/** The packages are installed already. Each has an exact version in test/package.json. */
const INSTALLED = 'npm() { :; }; npx() { "node_modules/.bin/$1"; };';

/** What the page says about the options of the compiler. */
const RECIPES = { 'openapi-fetch': STRICT, 'hey-api': { ...STRICT, exactOptionalPropertyTypes: false } };

for (const [recipe, compilerOptions] of Object.entries(RECIPES))
  test(`the recipe of docs/generated-clients.md for ${recipe} compiles, and prints what the page states`, async () => {
    const [introduction = '', ...sections] = GENERATED.split(/^(?=## )/m);
    const section = sections.find(each => each.startsWith(`## ${recipe}\n`))!;
    const blocks = blocksOf(introduction + section);
    const commands = blocks.filter(({ language }) => language === 'sh').map(({ code }) => code);
    const folder = programFolder();
    await using service = await startTestService();
    for (const { file, language, code } of blocks)
      if (language === 'ts') writeFileSync(join(folder, file!), code);
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', `${INSTALLED}\n${commands.join('')}`], {
      cwd: folder,
      env: {
        PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
        PLANT_STORE_URL: service.url,
        PLANT_STORE_TOKEN: service.token,
      },
      timeout: 60_000,
    });
    const [, stated] = /print `(.*)`:/.exec(section)!;
    assert.equal(stdout.trimEnd().split('\n').at(-1), stated);
    await compile(folder, compilerOptions);
  });

test('docs/generated-clients.md has no code outside its two recipes', () => {
  assert.doesNotMatch(GENERATED.split(/^## Other tools\n/m)[1]!, /```/);
  assert.equal(GENERATED.match(/^## /gm)?.length, 3);
});
