import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { JAVASCRIPT_RUNTIMES } from '../harness/javascript-runtimes.ts';
import { runProgram } from '../harness/program.ts';
import { startTestService } from '../harness/running-service.ts';
import { testFolder } from '../harness/test-folder.ts';
import { EXPECTED } from './client-in-runtime.ts';
import { startDroppingProxy } from './dropping-proxy.ts';

const CONTENTS = `import { useClient } from './client-in-runtime.ts';
console.log(JSON.stringify(await useClient({}, process.argv[2])));`;
const program = join(testFolder(), 'program.mjs');

// Older versions of Node do not run TypeScript.
before(async () => {
  const stdin = { contents: CONTENTS, resolveDir: import.meta.dirname };
  await build({ stdin, bundle: true, platform: 'node', format: 'esm', outfile: program });
});

suite('the client in every runtime', () => {
  for (const { name, executable, args } of JAVASCRIPT_RUNTIMES) {
    test(`${name}: exact ids, retries, plants in order, errors`, async () => {
      await using service = await startTestService();
      await using gateway = await startDroppingProxy(service.url);
      const { stdout } = await promisify(execFile)(executable, [...args, program, gateway.url], {
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
