import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');

for (const script of ['typecheck', 'lint'])
  test(`npm run ${script} finds no fault`, async () => {
    const child = spawn('npm', ['run', '--silent', script], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      // On Windows npm is a script, which only a shell can start.
      shell: process.platform === 'win32',
    });
    const output = [text(child.stdout), text(child.stderr), once(child, 'close')] as const;
    const [found, messages, [exitCode]] = await Promise.all(output);
    // An assertion would show line breaks and colours as escape sequences.
    if (exitCode !== 0) console.error(found + messages);
    assert.equal(exitCode, 0, 'the faults are above');
  });
