/**
 * Mutation testing: runs tests on a copy of the repository, with one small fault in the sources at a
 * time. A mutant that survives shows a gap in the tests.
 *
 *   npm run mutants [-- TEXT ...]
 *
 * Runs the mutants whose description contains one of the texts, or all. Exit codes: 1 a mutant
 * survived, 2 a mutant does not match the sources, or a test fails without a mutant.
 */
import { spawn } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { copyCheckout } from '../harness/copied-checkout.ts';
import mutants from './mutants.json' with { type: 'json' };

/** Replaces `from`, which must occur exactly once in `src`, by `to`. */
type Mutant = (typeof mutants)[number];

const ROOT = resolve(import.meta.dirname, '../..');
/** A mutant counts as killed if its tests hang. */
const TIMEOUT_MS = 240_000;

const texts = process.argv.slice(2);
const selected = mutants.filter(
  ({ fault }) => texts.length === 0 || texts.some(text => fault.includes(text)),
);
if (selected.length === 0) fail('no mutant has such a description');
const outdated = selected.filter(({ from }) => sourcesWith(from).length !== 1).map(({ fault }) => fault);
if (outdated.length > 0) fail(`"from" must occur once in src; change it for:\n${outdated.join('\n')}`);

let stopTests = (): void => {};
const copy = copyOfRepository();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
process.once('exit', () => {
  stopTests();
  rmSync(copy, { recursive: true });
});

const tests = [...new Set(selected.flatMap(each => each.tests))].sort();
console.log(`${selected.length} mutants; first their ${tests.length} test files without a mutant`);
for (const test of tests) if (!(await passes([test]))) fail(`${test} fails without a mutant`);

let survived = 0;
for (const [index, mutant] of selected.entries()) {
  const isKilled = await kills(mutant);
  if (!isKilled) survived++;
  console.log(`${index + 1}/${selected.length} ${isKilled ? 'killed  ' : 'SURVIVED'} ${mutant.fault}`);
}
console.log(`${selected.length - survived} killed, ${survived} survived`);
process.exitCode = survived > 0 ? 1 : 0;

function fail(message: string): never {
  console.error(message);
  process.exit(2);
}

/** The path of a source for each occurrence of a text. */
function sourcesWith(text: string): string[] {
  return globSync('{src,tools}/**/*.{ts,js}', { cwd: ROOT }).flatMap(path =>
    readFileSync(join(ROOT, path), 'utf8').split(text).slice(1).fill(path),
  );
}

/** @returns the folder of the copy */
function copyOfRepository(): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-mutant-'));
  copyCheckout(folder);
  for (const packages of ['node_modules', 'test/node_modules', 'packaging/compiler/node_modules'])
    symlinkSync(join(ROOT, packages), join(folder, packages));
  return folder;
}

/** Whether the tests of a mutant fail. */
async function kills({ from, to, tests: own }: Mutant): Promise<boolean> {
  const file = join(copy, sourcesWith(from)[0]!);
  const original = readFileSync(file, 'utf8');
  writeFileSync(file, original.split(from).join(to));
  const isPassed = await passes(own);
  writeFileSync(file, original);
  return !isPassed;
}

async function passes(files: readonly string[]): Promise<boolean> {
  const args = ['--test', ...files];
  const child = spawn(process.execPath, args, { cwd: copy, stdio: 'ignore', detached: true });
  // The process group includes the services that the tests have started.
  stopTests = () => process.kill(-child.pid!, 'SIGKILL');
  const timer = setTimeout(stopTests, TIMEOUT_MS);
  const exitCode = await new Promise(settle => child.once('exit', settle));
  clearTimeout(timer);
  stopTests = () => {};
  return exitCode === 0;
}
