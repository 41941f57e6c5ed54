import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startBrowser } from '../harness/browser.ts';
import { listen } from '../harness/loopback-server.ts';
import { startServe } from '../harness/program.ts';
import { testFolder } from '../harness/test-folder.ts';

// test/packaging/package.test.ts runs send-plant.mjs, which needs the installed package.
const EXAMPLES = new URL('../../examples/', import.meta.url);
const hasPython = spawnSync('python3', ['--version']).status === 0;

test('the examples send a plant, and show the message of an error', async () => {
  const html = readFileSync(new URL('send-plant.html', EXAMPLES));
  await using page = await listen(
    createServer((_request, response) => response.setHeader('Content-Type', 'text/html').end(html)),
  );
  await using service = await startServe(`sqlite:${testFolder()}/plants.db`, ['--cors-origin', page.url]);

  if (!hasPython) console.error('NOT TESTED HERE: send_plant.py needs python3');
  else {
    const program = fileURLToPath(new URL('send_plant.py', EXAMPLES));
    const run = (token: string, ...plant: string[]): Promise<{ stdout: string }> => {
      const env = { ...process.env, PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: token };
      return promisify(execFile)('python3', [program, ...plant], { env });
    };
    const { stdout } = await run(service.token, '9007199254740993', 'Monstera déliciosa', 'houseplant');
    assert.equal(stdout.trim(), 'created plant 9007199254740993, revision 1');
    await assert.rejects(run('plant_mistyped', '1', 'Ficus'), { stderr: /^401: .*token/ });
  }

  await using browser = await startBrowser();
  const { page: tab } = await browser.openPage();
  await tab.goto(page.url);
  const send = async (id: string, token: string): Promise<void> => {
    const fields = { Service: service.url, Token: token, Id: id, Name: 'Monstera' };
    for (const [label, text] of Object.entries(fields)) await tab.getByLabel(label).fill(text);
    await tab.getByRole('button').click();
  };
  await send('9007199254740994', service.token);
  await tab.locator('output', { hasText: 'created plant 9007199254740994, revision 1' }).waitFor();
  await send('1', 'plant_mistyped');
  await tab.locator('output', { hasText: 'token' }).waitFor();
});
