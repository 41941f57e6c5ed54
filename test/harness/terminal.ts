import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAM } from './program.ts';
import { testFolder } from './test-folder.ts';

/** `script` of util-linux; other systems have another one. */
export const HAS_TERMINAL = spawnSync('script', ['-qefc', 'test -t 2', '/dev/null']).status === 0;

/**
 * Runs a command on a terminal. It reads the text from a FIFO, which stays open until the terminal shows
 * the pattern.
 *
 * @returns everything that the terminal showed
 */
export async function shownOnTerminal(
  argsFor: (fifo: string) => string[],
  text: string,
  until: RegExp,
): Promise<string> {
  const fifo = join(testFolder(), 'input');
  await promisify(execFile)('mkfifo', [fifo]);
  const command = [process.execPath, PROGRAM, ...argsFor(fifo)].map(word => `'${word}'`).join(' ');
  const terminal = spawn('script', ['-qefc', command, '/dev/null'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const input = createWriteStream(fifo);
  input.write(text);
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', part => {
    shown += part;
    if (until.test(shown)) input.end();
  });
  await once(terminal, 'close');
  return shown;
}
