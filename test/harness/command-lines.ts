import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { main } from '../../src/cli/main.ts';
import type { Finished, StartOptions } from './program.ts';

/** The arguments of a command, with environment variables for this command only. */
export interface CommandLine {
  args: readonly string[];
  env?: Record<string, string>;
}

/** Far longer than all commands take on a slow machine. */
const RUN_MS_MAX = 300_000;

/**
 * Runs commands one after the other in one process. A process for each would cost 0.3 s of CPU
 * time.
 *
 * @returns the exit code and the output of each
 */
export async function runCommandLines(
  commands: readonly CommandLine[],
  cwd: string,
  { nodeArgs = [], env }: Pick<StartOptions, 'nodeArgs' | 'env'> = {},
): Promise<Finished[]> {
  const args = [...nodeArgs, fileURLToPath(import.meta.url), JSON.stringify(commands)];
  const options = { cwd, env: { PATH: process.env.PATH, ...env }, timeout: RUN_MS_MAX };
  const child = spawn(process.execPath, args, options);
  const [stdout, stderr] = await Promise.all([readText(child.stdout), readText(child.stderr)]);
  const texts = stderr.split('\0');
  assert.equal(texts.length, commands.length + 1, stderr);
  return stdout
    .split('\0')
    .slice(0, -1)
    .map((text, index) => {
      const [, errorText, exitCode] = /^(.*?)(\d)$/s.exec(texts[index]!)!;
      return { exitCode: Number(exitCode), stdout: text, stderr: errorText! };
    });
}

/** Writes a NUL to stdout and stderr after each command, on stderr with the exit code before it. */
async function runHere(commands: readonly CommandLine[]): Promise<void> {
  // Each command adds listeners for signals and for errors of stdout.
  process.setMaxListeners(0);
  process.stdout.setMaxListeners(0);
  for (const { args, env = {} } of commands) {
    Object.assign(process.env, env);
    await main([process.execPath, 'plant-store', ...args]);
    for (const name of Object.keys(env)) delete process.env[name];
    process.stdout.write('\0');
    process.stderr.write(`${process.exitCode ?? 0}\0`);
    process.exitCode = 0;
  }
}

if (import.meta.main) await runHere(JSON.parse(process.argv[2]!) as CommandLine[]);
