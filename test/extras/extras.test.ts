import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { copyCheckout } from '../harness/copied-checkout.ts';
import { testFolder } from '../harness/test-folder.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const EXTRAS = readdirSync(join(ROOT, 'src/extras'));
const PACKAGES = ['node_modules', 'test/node_modules', 'packaging/compiler/node_modules'];
/** What a client sees of a service. */
const TESTS = 'test/server/http-requests.test.ts';

/** A copy of this checkout. */
const cwd = testFolder();
copyCheckout(cwd);
for (const folder of PACKAGES) symlinkSync(join(ROOT, folder), join(cwd, folder));

/** Changes the copy: all extras but these, without the lines of these. */
function leaveOut(extras: readonly string[]): void {
  for (const folder of ['src', 'test']) {
    cpSync(join(ROOT, folder, 'extras'), join(cwd, folder, 'extras'), { recursive: true });
    for (const extra of extras) rmSync(join(cwd, folder, 'extras', extra), { recursive: true });
  }
  const lines = readFileSync(join(ROOT, 'src/extras.ts'), 'utf8').split('\n');
  const others = lines.filter(line => !extras.some(extra => line.includes(`./extras/${extra}/`)));
  assert.equal(others.length, lines.length - extras.length);
  writeFileSync(join(cwd, 'src/extras.ts'), others.join('\n'));
}

// Also finds an extra that needs another one.
for (const extra of EXTRAS)
  test(`without the folder of ${extra} and its line, the service compiles`, async () => {
    leaveOut([extra]);
    // Checks again only what depends on a changed file.
    const compilerOptions = { incremental: true, tsBuildInfoFile: 'service.tsbuildinfo' };
    const project = { extends: './tsconfig.json', include: ['bin', 'src', 'tools'], compilerOptions };
    writeFileSync(join(cwd, 'tsconfig.service.json'), JSON.stringify(project));
    const args = ['packaging/compiler/node_modules/typescript/bin/tsc', '-p', 'tsconfig.service.json'];
    await assert.doesNotReject(promisify(execFile)(process.execPath, args, { cwd }));
  });

test('without all extras, the service starts and passes its tests', async () => {
  leaveOut(EXTRAS);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  for (const args of [
    ['bin/plant-store.js', '--help'],
    ['--test', TESTS],
  ])
    await assert.doesNotReject(promisify(execFile)(process.execPath, args, { cwd, env }));
});
