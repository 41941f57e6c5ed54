import { execFileSync } from 'node:child_process';
import { copyFileSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from '../test/harness/program.ts';
import { median } from '../test/harness/statistics.ts';
import type { Measurement } from './measurements.ts';
import { plantStoreOnSqlite, type Subject } from './subjects.ts';
import { type Durations, newFolder, startSettled, warmUp } from './trial.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const STARTS = 3;

/** Imports a file of plants through a service after a warm-up. */
export async function measureImport(
  file: string,
  plants: number,
  round: number,
  { warmUpSeconds, signal }: Durations,
): Promise<Measurement[]> {
  using folder = newFolder();
  const running = await startSettled(plantStoreOnSqlite('plant store'), folder.path);
  try {
    await warmUp(running, warmUpSeconds, signal);
    const address = ['--url', running.url, '--token', running.token];
    const seconds = await secondsOf(['import', ...address, file]);
    return [{ subject: 'import', round, figures: { ratePerSecond: plants / seconds } }];
  } finally {
    await running.stop();
  }
}

/** @returns the median time of several starts, each on a new store */
export async function measureStart(subject: Subject, round: number): Promise<Measurement[]> {
  const startsMs: number[] = [];
  for (let start = 0; start < STARTS; start++) {
    using folder = newFolder();
    const running = await startSettled(subject, folder.path);
    startsMs.push(running.startMs);
    await running.stop();
  }
  return [{ subject: subject.name, round, figures: { startMs: median(startsMs) } }];
}

/** @returns the path of the executable */
export function buildExecutable(folder: string): string {
  execFileSync(process.execPath, [join(ROOT, 'packaging/build-executable.ts'), folder], { stdio: 'ignore' });
  return join(folder, 'plant-store');
}

/** Measures the disk space of `npm ci` for a user who only runs the service. */
export function measureInstall(round: number): Measurement[] {
  using folder = newFolder();
  for (const file of ['package.json', 'package-lock.json']) {
    copyFileSync(join(ROOT, file), join(folder.path, file));
  }
  execFileSync('npm', ['ci'], { cwd: folder.path, stdio: ['ignore', 2, 2] });
  return [{ subject: 'npm ci', round, figures: { diskBytes: diskBytesOf(folder.path) } }];
}

/** Counts a file with several hard links once. */
function diskBytesOf(folder: string): number {
  const seen = new Set<number>();
  let bytes = 0;
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const { ino, blocks } = lstatSync(join(folder, name));
    // A block of stat(2) is 512 bytes on every file system.
    if (!seen.has(ino)) bytes += blocks * 512;
    seen.add(ino);
  }
  return bytes;
}

/** Runs a command of the plant store. @returns its duration @throws if it fails */
async function secondsOf(args: string[]): Promise<number> {
  const sinceMs = performance.now();
  const { exitCode, stderr } = await runProgram(args);
  if (exitCode !== 0) throw new Error(`${args[0]} ended with ${exitCode}: ${stderr}`);
  return (performance.now() - sinceMs) / 1000;
}
