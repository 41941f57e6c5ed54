import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Json, json, signIn } from '../harness/console-session.ts';
import { freePort } from '../harness/free-port.ts';
import { ON_TERMINAL, runProgram, startServe } from '../harness/program.ts';
import { HAS_TERMINAL } from '../harness/terminal.ts';
import { testFolder } from '../harness/test-folder.ts';

const database = `sqlite:${join(testFolder(), 'plants.db')}`;

test('the console and messages show each setting as a user would write it', async () => {
  const ops = `[::1]:${await freePort()}`;
  const opsUrl = `http://${ops}`;
  const flags = ['--ops', ops, '--rate-limit', '6000/min', '--trust-proxy', '10.0.0.1,10.0.0.2'];
  await using _serve = await startServe(database, flags);
  const { message } = (await (await fetch(`${opsUrl}/console/api/store`)).json()) as Json;
  assert.ok(message.includes(`npx plant-store console --database '${database}' --ops ${ops}`), message);
  const link = await runProgram(['console', '--database', database, '--ops', ops]);
  assert.match(link.stdout, /^http:\/\/\[::1\]:[0-9]+\/console\/#[\w-]+\n$/);
  const operator = await signIn({ opsUrl }, new URL(link.stdout.trim()).hash.slice(1));
  const { settings } = await json(operator, 'store');
  const shown = new Map<string, string>(settings.map(([name, value]: string[]) => [name, value]));
  for (const [name, value] of [
    ['listen', '127.0.0.1:0'],
    ['ops', ops],
    ['ops-host', 'not set'],
    ['body-limit', '1048576 bytes'],
    ['connections', '4'],
    ['console', 'on'],
    ['rate-limit', '6000/min'],
    ['trust-proxy', '10.0.0.1, 10.0.0.2'],
    ['database', database],
  ] as const)
    assert.equal(shown.get(name), value);
  const other = `sqlite:${join(testFolder(), 'other.db')}`;
  const second = await runProgram(['serve', '--database', other, '--listen', '127.0.0.1:0', '--ops', ops]);
  assert.ok(second.stderr.includes(`another program uses ${ops}; `), second.stderr);
});

if (HAS_TERMINAL)
  test('on a terminal, the command for another link to the console can be copied', async () => {
    await using serve = await startServe(database, ['--ops', '[::1]:0'], { prefix: ON_TERMINAL });
    const { stderr } = await serve.stop('SIGTERM');
    assert.match(stderr, /npx plant-store console --database '.*' --ops \[::1\]:[1-9][0-9]*\s/);
  });
