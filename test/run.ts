/**
 * Runs all test files, several at a time. The files that take longest begin first: otherwise the
 * last one would run alone, on one core.
 *
 *   npm test
 */
import { globSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { FILES_AT_A_TIME } from './harness/free-port.ts';
import { memoryFolder } from './harness/memory-folder.ts';

const ROOT = resolve(import.meta.dirname, '..');
/** Far longer than a file takes on a busy machine. */
const FILE_MAX_MS = 900_000;
/** Each computes or waits for ten seconds or more. */
const LONGEST = [
  'test/server/http-slow-clients.test.ts',
  'test/operate/console/console-page.test.ts',
  'test/cli/copy/copy.test.ts',
  'test/client/client-runtimes.test.ts',
  'test/pages/docs/docs-form.test.ts',
  'test/extras/extras.test.ts',
  'test/packaging/package.test.ts',
  'test/packaging/executable.test.ts',
  'test/simulation/simulation.test.ts',
  'test/cli/verify.test.ts',
  'test/repository/checks.test.ts',
  'test/engines/postgres/postgres-unknown-commits.test.ts',
  'test/engines/foreign-schema.test.ts',
  'test/engines/postgres/postgres-faults.test.ts',
  'test/operate/console/verdict.test.ts',
  'test/tools/import/import-readers.test.ts',
  'test/engines/sqlite/disk-full.test.ts',
  'test/extras/sandbox/sandbox.test.ts',
  'test/tools/import/dry-run.test.ts',
  'test/tools/import/safe-import.test.ts',
];

const exclude = (path: string): boolean => path.includes('node_modules');
const all = globSync('test/**/*.test.ts', { cwd: ROOT, exclude })
  .map(file => file.replaceAll('\\', '/'))
  .sort();
const files = [...new Set([...LONGEST, ...all])].map(file => join(ROOT, file));

const temporary = process.env.TMPDIR ?? memoryFolder();
if (temporary !== undefined) process.env.TMPDIR = temporary;
// The folder is removed at the exit, which a signal alone would skip.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

run({ files, concurrency: FILES_AT_A_TIME, timeout: FILE_MAX_MS })
  .on('test:fail', () => {
    process.exitCode = 1;
  })
  .compose(new spec())
  .pipe(process.stdout);
