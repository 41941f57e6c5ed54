import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { main } from '../../src/main.ts';
import { type Finished, PROGRAM, type StartOptions } from './program.ts';
import { testFolder } from './test-folder.ts';

/** The arguments of a command, with what is for this command only. */
interface CommandLine {
  args: readonly string[];
  env?: Record<string, string>;
  /** Relative to the folder of the process, which is the default. */
  cwd?: string;
  stdin?: string | Uint8Array;
}

/** Far longer than all commands take on a slow machine. */
const RUN_MAX_MS = 900_000;

/** A process that runs commands one after the other. One for each would cost 0.3 s of CPU time. */
class CommandProcess implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #stdout: AsyncIterator<string>;
  readonly #stderr: AsyncIterator<string>;
  readonly #ended: Promise<unknown>;

  constructor(cwd: string, { nodeArgs = [], env }: Pick<StartOptions, 'nodeArgs' | 'env'> = {}) {
    const args = [...nodeArgs, fileURLToPath(import.meta.url)];
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const options = { cwd, env: { PATH, NODE_COMPILE_CACHE, ...env }, timeout: RUN_MAX_MS };
    this.#child = spawn(process.execPath, args, options);
    this.#ended = once(this.#child, 'close');
    this.#stdout = textsOf(this.#child.stdout);
    this.#stderr = textsOf(this.#child.stderr);
  }

  async run({ stdin = '', ...command }: CommandLine): Promise<Finished> {
    const input = Buffer.from(stdin).toString('base64');
    this.#child.stdin.write(`${JSON.stringify({ ...command, input })}\n`);
    const [stdout, stderr] = await Promise.all([this.#stdout.next(), this.#stderr.next()]);
    assert.ok(!stdout.done && !stderr.done, `the process of ${command.args} ended`);
    const [, errorText, exitCode] = /^(.*?)(\d)$/s.exec(stderr.value)!;
    return { exitCode: Number(exitCode), stdout: stdout.value, stderr: errorText! };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    // An iterator that is not at its end would keep the stream open.
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream.destroy();
    await this.#ended;
  }
}

/** @returns a {@link CommandProcess} that ends after the last test of the file */
export function commandProcess(cwd = testFolder()): CommandProcess {
  const commands = new CommandProcess(cwd);
  after(() => commands[Symbol.asyncDispose]());
  return commands;
}

/** Runs commands in a {@link CommandProcess}. @returns the exit code and the output of each */
export async function runCommandLines(
  commands: readonly CommandLine[],
  cwd: string,
  options?: Pick<StartOptions, 'nodeArgs' | 'env'>,
): Promise<Finished[]> {
  await using running = new CommandProcess(cwd, options);
  return await Promise.all(commands.map(each => running.run(each)));
}

async function* textsOf(stream: Readable): AsyncGenerator<string> {
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    const texts = (text + chunk).split('\0');
    text = texts.pop()!;
    yield* texts;
  }
  assert.equal(text, '', 'the process ended');
}

/** Writes a NUL to stdout and stderr after each command, on stderr with the exit code before it. */
async function runHere(): Promise<void> {
  // Each command adds listeners for signals and for errors of stdout.
  process.setMaxListeners(0);
  process.stdout.setMaxListeners(0);
  // `backup` starts the program again.
  process.argv[1] = PROGRAM;
  // `verify` lowers the priority of its process, which only root may raise again.
  os.setPriority = () => {};
  syncBuiltinESMExports();
  const folder = process.cwd();
  for await (const line of createInterface(process.stdin)) {
    const { args, env = {}, cwd = '', input } = JSON.parse(line) as CommandLine & { input: string };
    Object.assign(process.env, env);
    process.chdir(resolve(folder, cwd));
    Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input, 'base64')]) });
    await main([process.execPath, PROGRAM, ...args]);
    for (const name of Object.keys(env)) delete process.env[name];
    process.stdout.write('\0');
    process.stderr.write(`${process.exitCode ?? 0}\0`);
    process.exitCode = 0;
  }
}

if (import.meta.main) await runHere();
