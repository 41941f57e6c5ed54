import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
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

/** @returns a copy of this checkout without the folders of these extras, and without their lines */
function checkoutWithout(extras: readonly string[]): string {
  const cwd = testFolder();
  copyCheckout(cwd);
  for (const folder of PACKAGES) symlinkSync(join(ROOT, folder), join(cwd, folder));
  for (const extra of extras)
    for (const folder of ['src', 'test']) rmSync(join(cwd, folder, 'extras', extra), { recursive: true });
  const list = join(cwd, 'src/extras.ts');
  const lines = readFileSync(list, 'utf8').split('\n');
  const others = lines.filter(line => !extras.some(extra => line.includes(`./extras/${extra}/`)));
  assert.equal(others.length, lines.length - extras.length);
  writeFileSync(list, others.join('\n'));
  return cwd;
}

// Also finds an extra that needs another one.
for (const extra of EXTRAS)
  test(`without the folder of ${extra} and its line, the service compiles`, async () => {
    const cwd = checkoutWithout([extra]);
    const project = { extends: './tsconfig.json', include: ['bin', 'src'] };
    writeFileSync(join(cwd, 'tsconfig.service.json'), JSON.stringify(project));
    const args = ['packaging/compiler/node_modules/typescript/bin/tsc', '-p', 'tsconfig.service.json'];
    await assert.doesNotReject(promisify(execFile)(process.execPath, args, { cwd }));
  });

test('without all extras, the service starts and passes its tests', async () => {
  const cwd = checkoutWithout(EXTRAS);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  for (const args of [
    ['bin/plant-store.js', '--help'],
    ['--test', TESTS],
  ])
    await assert.doesNotReject(promisify(execFile)(process.execPath, args, { cwd, env }));
});
