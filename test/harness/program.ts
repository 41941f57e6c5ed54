import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { newPlantJson } from '../../src/core/contract/plant.ts';

/** The program of this checkout. */
export const PROGRAM = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url));

export interface Finished {
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

/** Asserts that a command printed no result, and a message that matches. */
export function assertFailed({ exitCode, stdout, stderr }: Finished, says: RegExp, code = 1): void {
  assert.match(stderr, says);
  assert.deepEqual([exitCode, stdout], [code, '']);
}

export interface StartOptions {
  env?: Record<string, string>;
  cwd?: string;
  nodeArgs?: string[];
  /** The command that `startServe` runs, by default `serve`. */
  command?: string;
  /** The file to run, by default the program of this checkout. */
  executable?: string;
  /** A command that runs the program, for example in a separate network. */
  prefix?: readonly string[] | undefined;
  /** Milliseconds after which the process is killed. A process of a failed test would run on. */
  timeout?: number;
}

/** Starts the command line as a process, without the settings of this machine. */
export function startProgram(
  args: string[],
  { env, nodeArgs = [], executable, prefix = [], ...options }: StartOptions = {},
): ChildProcess {
  const program = executable === undefined ? [process.execPath, ...nodeArgs, PROGRAM] : [executable];
  const [file = '', ...before] = [...prefix, ...program];
  return spawn(file, [...before, ...args], {
    ...options,
    killSignal: 'SIGKILL',
    env: { PATH: process.env.PATH, ...env },
    stdio: 'pipe',
  });
}

/** Far longer than a command takes on a slow machine. */
const COMMAND_MAX_MS = 180_000;

/** Starts the command line. @returns the process, and its result when it ends */
export function startCommand(
  args: string[],
  options?: StartOptions,
): { child: ChildProcess; finished: Promise<Finished> } {
  const child = startProgram(args, { timeout: COMMAND_MAX_MS, ...options });
  const output = [readText(child.stdout!), readText(child.stderr!), once(child, 'close')] as const;
  const finished = Promise.all(output).then(([stdout, stderr, [exitCode]]) => ({ stdout, stderr, exitCode }));
  return { child, finished };
}

export function runProgram(
  args: string[],
  { stdin, ...options }: StartOptions & { stdin?: string | Uint8Array } = {},
): Promise<Finished> {
  const { child, finished } = startCommand(args, options);
  child.stdin!.end(stdin);
  return finished;
}

/**
 * Reads the file that the first start names without a terminal.
 *
 * @param root the root folder of the service, which may have mounts of its own
 * @returns '' if there is no such file
 */
export function firstTokenOf(greeting: string, root = ''): string {
  const file = / first token is in the file (.+)$/m.exec(greeting)?.[1];
  return file === undefined ? '' : readFileSync(root + file, 'utf8').trimEnd();
}

/** Runs a command on a terminal and writes what it prints to stderr. */
export const ON_TERMINAL = ['sh', '-c', 'exec script -qefc "exec $*" /dev/null >&2', 'sh'];

export const FREE_PORTS = ['--listen', '127.0.0.1:0', '--ops', '127.0.0.1:0'];

/** A running `serve` process. `await using` kills it, unless it has ended. */
export interface ServeProcess extends AsyncDisposable {
  child: ChildProcess;
  url: string;
  /** The token of a new SQLite store; empty if the store is not new. */
  token: string;
  logged(): string[];
  /** What it has written to stderr so far. */
  printed(): string;
  stop(signal: NodeJS.Signals): Promise<Finished>;
}

/** Starts `serve` on free ports, and waits until it accepts plants. @throws if it ends instead */
export async function startServe(
  database: string,
  args: string[] = [],
  options: StartOptions = {},
): Promise<ServeProcess> {
  // The last value of an option counts.
  const child = startProgram(
    [options.command ?? 'serve', '--database', database, ...FREE_PORTS, ...args],
    options,
  );
  const finished: Finished = { exitCode: null, stdout: '', stderr: '' };
  child.stdout!.setEncoding('utf8').on('data', text => (finished.stdout += text));
  const ended = once(child, 'close').then(([exitCode]): Finished => ({ ...finished, exitCode }));
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr!.setEncoding('utf8').on('data', text => {
      finished.stderr += text;
      const found = /Accepting plants at (\S+)\/plants/.exec(finished.stderr)?.[1];
      if (found !== undefined) resolve(found);
    });
    void ended.then(({ exitCode, stderr }) => reject(new Error(`serve ended with ${exitCode}: ${stderr}`)));
  });
  const stop = (signal: NodeJS.Signals): Promise<Finished> => {
    child.kill(signal);
    return ended;
  };
  return {
    child,
    url,
    token: firstTokenOf(finished.stderr, options.prefix && `/proc/${child.pid}/root`),
    logged: () => finished.stdout.split('\n').filter(line => line !== ''),
    printed: () => finished.stderr,
    stop,
    [Symbol.asyncDispose]: async () => void (await stop('SIGKILL')),
  };
}

export function sendBody(
  url: string,
  token: string,
  body: string | Uint8Array<ArrayBuffer>,
): Promise<Response> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  return fetch(`${url}/plants`, { method: 'POST', headers, body });
}

/** Sends a plant by `fetch`. @returns the status */
export async function sendPlant(url: string, token: string, id: bigint): Promise<number> {
  return (await sendBody(url, token, newPlantJson({ id, name: 'Monstera' }))).status;
}
