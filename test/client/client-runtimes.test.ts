import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runProgram } from '../harness/program.ts';
import { startTestService } from '../harness/running-service.ts';
import { EXPECTED } from './client-in-runtime.ts';
import { startDroppingProxy } from './dropping-proxy.ts';

const PROGRAM = fileURLToPath(new URL('./client-runtime-program.ts', import.meta.url));
const PACKAGES = fileURLToPath(new URL('../node_modules/', import.meta.url));
// Deno denies everything that is not allowed here: the network, and two environment variables.
const DENO = ['run', '--no-config', '--allow-net=127.0.0.1', '--allow-env=PLANT_STORE_URL,PLANT_STORE_TOKEN'];
const RUNTIMES: [string, string, string[]][] = [
  ['Node', process.execPath, [PROGRAM]],
  ['Bun', `${PACKAGES}bun/bin/bun.exe`, [PROGRAM]],
  ['Deno', `${PACKAGES}deno/deno`, [...DENO, PROGRAM]],
];

suite('the client in every runtime', () => {
  for (const [name, program, args] of RUNTIMES) {
    test(`${name}: exact ids, retries, plants in order, errors`, async () => {
      await using service = await startTestService();
      await using gateway = await startDroppingProxy(service.url);
      const { stdout } = await promisify(execFile)(program, [...args, gateway.url], {
        env: { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token },
        timeout: 60_000,
      });
      assert.deepEqual(JSON.parse(stdout), EXPECTED);
      const exported = await runProgram(['export', '--database', service.database, '--format', 'jsonl']);
      const lines = exported.stdout.split('\n');
      for (const id of ['9007199254740993', '9223372036854775807', '-9223372036854775808'])
        assert.ok(lines.includes(`{"id":${id},"name":"exact 🌱","tag":""}`), id);
      // The export ends with a line end, so the last line is empty.
      assert.equal(lines.length, 3 + 1 + 1 + 500 + 1);
    });
  }
});
