/**
 * Mutation testing: runs the tests against faulty copies of the sources. A mutant is one small
 * fault, with test files of which at least one must fail. A mutant that survives shows a gap in the
 * tests.
 *
 *   node test/mutants/mutants.ts [--jobs 2] [FILE.json ...]
 *
 * Prints a line for each mutant and the counts. Exit codes: 1 a mutant survived, 2 one no longer
 * applies.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

/** Replaces `from`, which must occur exactly once in `file`, by `to`. */
interface Mutant {
  /** A description for people. */
  fault: string;
  file: string;
  from: string;
  to: string;
  /** Test files, of which at least one must fail. */
  tests: string[];
}

const ROOT = resolve(import.meta.dirname, '../..');
/** A mutant counts as killed if its tests hang. */
const TIMEOUT_MS = 240_000;
/** Installed packages, build results and data. */
const NOT_COPIED =
  /^(?:node_modules|test\/node_modules|bench\/node_modules|\.git|dist|data|executable)(?:\/|$)/;

/** A copy of the repository for one mutant at a time. */
class Copy {
  readonly #folder = mkdtempSync(join(tmpdir(), 'plant-store-mutant-'));

  constructor(root: string) {
    const filter = (path: string): boolean => !NOT_COPIED.test(path.slice(root.length + 1));
    cpSync(root, this.#folder, { recursive: true, filter });
    for (const packages of ['node_modules', 'test/node_modules'])
      if (existsSync(join(root, packages))) symlinkSync(join(root, packages), join(this.#folder, packages));
    spawnSync('git', ['init', '-q'], { cwd: this.#folder });
  }

  /** @returns whether the tests failed; undefined if the mutant no longer applies */
  async kills(mutant: Mutant): Promise<boolean | undefined> {
    const file = join(this.#folder, mutant.file);
    const original = readFileSync(file, 'utf8');
    const parts = original.split(mutant.from);
    if (parts.length !== 2 || mutant.from === mutant.to) return undefined;
    writeFileSync(file, parts.join(mutant.to));
    try {
      return !(await this.#pass(mutant.tests));
    } finally {
      writeFileSync(file, original);
    }
  }

  async #pass(tests: string[]): Promise<boolean> {
    const child = spawn(process.execPath, ['--test', ...tests], {
      cwd: this.#folder,
      stdio: 'ignore',
      detached: true,
    });
    const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), TIMEOUT_MS);
    const exitCode = await new Promise(settle => child.once('exit', settle));
    clearTimeout(timer);
    return exitCode === 0;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { jobs: { type: 'string', default: '2' }, root: { type: 'string', default: ROOT } },
    allowPositionals: true,
  });
  const lists = positionals.length > 0 ? positionals : globSync(join(import.meta.dirname, '*.json')).sort();
  const waiting: Mutant[] = lists.flatMap(list => JSON.parse(readFileSync(list, 'utf8')) as Mutant[]);
  const count = { killed: 0, survived: 0, outdated: 0 };
  await Promise.all(
    Array.from({ length: Number(values.jobs) }, async () => {
      const copy = new Copy(resolve(values.root));
      for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
        const killed = await copy.kills(mutant);
        const result = killed === undefined ? 'outdated' : killed ? 'killed' : 'survived';
        count[result]++;
        console.log(`${result.padEnd(9)} ${mutant.file}: ${mutant.fault}`);
      }
      copy.remove();
    }),
  );
  console.log(`${count.killed} killed, ${count.survived} survived, ${count.outdated} no longer apply`);
  process.exitCode = count.outdated > 0 ? 2 : count.survived > 0 ? 1 : 0;
}

if (import.meta.main) await main();
