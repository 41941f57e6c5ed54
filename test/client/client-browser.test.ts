import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import type { PlantStoreOptions } from '../../src/client/plant-store.ts';
import { startBrowser } from '../harness/browser.ts';
import { listen } from '../harness/loopback-server.ts';
import { runProgram } from '../harness/program.ts';
import { startTestService } from '../harness/running-service.ts';
import { EXPECTED } from './client-in-runtime.ts';
import { startDroppingProxy } from './dropping-proxy.ts';

/** Largest compressed size of the client in a page, in bytes; docs/client.md states it. */
const PACKED_BYTES_MAX = 6_700;

/** Bundles a file and its imports into one script for a page. */
async function bundle(file: string): Promise<string> {
  const { outputFiles, warnings } = await build({
    entryPoints: [fileURLToPath(new URL(file, import.meta.url))],
    ...{ bundle: true, minify: true, write: false },
    ...{ platform: 'browser', format: 'iife', globalName: 'client', target: 'es2022' },
    logLevel: 'silent',
  });
  assert.deepEqual(warnings, []);
  return outputFiles[0]!.text;
}

/** Serves a page of another origin than the service. */
async function startPage(script: string): Promise<{ url: string } & AsyncDisposable> {
  const html =
    '<!doctype html><title>plants</title><link rel="icon" href="data:,"><script src="client.js"></script>';
  const server = createServer((request, response) => {
    const [type, text] = request.url === '/client.js' ? ['text/javascript', script] : ['text/html', html];
    response.setHeader('Content-Type', type).end(text);
  });
  return await listen(server);
}

suite('the client in a browser', () => {
  let script: string;
  before(async () => {
    script = await bundle('./client-in-runtime.ts');
  });

  test('sends plants with exact ids from a page of another origin', { timeout: 120_000 }, async () => {
    await using page = await startPage(script);
    await using service = await startTestService({ corsOrigins: [page.url] });
    await using gateway = await startDroppingProxy(service.url);
    await using browser = await startBrowser();
    const { page: tab } = await browser.openPage();
    await tab.goto(page.url);
    const result = await tab.evaluate(
      ([url, token, droppingUrl]) => {
        const { client } = globalThis as unknown as {
          client: {
            useClient(service: PlantStoreOptions, droppingUrl: string): Promise<Record<string, string>>;
          };
        };
        return client.useClient({ url: url!, token: token! }, droppingUrl!);
      },
      [service.url, service.token, gateway.url],
    );
    assert.deepEqual(result, { ...EXPECTED, moved: 'undefined undefined is permanent' });
    const { stdout } = await runProgram(['export', '--database', service.database, '--format', 'jsonl']);
    assert.match(stdout, /^\{"id":-9223372036854775808,"name":"exact 🌱","tag":""\}$/m);
    assert.match(stdout, /^\{"id":9007199254740993,"name":"exact 🌱","tag":""\}$/m);
  });

  test('is small, and imports no Node module', async () => {
    const client = await bundle('../../src/client/plant-store.ts');
    const packedBytes = gzipSync(client).length;
    assert.ok(packedBytes <= PACKED_BYTES_MAX, `${packedBytes} bytes`);
    assert.doesNotMatch(client, /\brequire\(|\bimport\b/);
  });
});
