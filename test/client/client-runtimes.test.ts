import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { startBrowser } from '../harness/browser.ts';
import { type LoopbackServer, listen } from '../harness/loopback-server.ts';
import { runProgram } from '../harness/program.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { testFolder } from '../harness/test-folder.ts';
import { EXPECTED, type useClient } from './client-in-runtime.ts';

/** The oldest major version of Node that the client supports. */
const NODE_MIN = 20;
const PACKAGES = fileURLToPath(new URL('../node_modules/', import.meta.url));
// Deno denies everything that is not allowed here: the network, and two environment variables.
const DENO = ['run', '--allow-net=127.0.0.1', '--allow-env=PLANT_STORE_URL,PLANT_STORE_TOKEN'];

/** The command lines of all supported runtimes of this machine: every Node on the PATH, Bun, Deno. */
const RUNTIMES = new Map([[`Node ${process.version}`, [process.execPath]]]);
for (const folder of process.env.PATH!.split(delimiter)) {
  const { stdout } = spawnSync(join(folder, 'node'), ['--version'], { encoding: 'utf8' });
  const [version, major] = /^v(\d+).*/.exec(stdout ?? '') ?? [];
  if (Number(major) >= NODE_MIN) RUNTIMES.set(`Node ${version}`, [join(folder, 'node')]);
}
RUNTIMES.set('Bun', [`${PACKAGES}bun/bin/bun.exe`]).set('Deno', [`${PACKAGES}deno/deno`, ...DENO]);

/** The client in one script, which sets the variable `client`. It can import no module of Node. */
const { outputFiles, warnings } = await build({
  entryPoints: [fileURLToPath(new URL('./client-in-runtime.ts', import.meta.url))],
  bundle: true,
  write: false,
  platform: 'browser',
  format: 'iife',
  globalName: 'client',
  target: 'es2022',
  logLevel: 'silent',
});
assert.deepEqual(warnings, []);
const script = outputFiles[0]!.text;

/** Without this header a page cannot read the response, and treats it as a network error. */
const READABLE = { 'Access-Control-Allow-Origin': '*' };

/**
 * Starts a proxy that responds 503 once, then closes one connection, and then forwards all requests.
 * Below the path `/cut` it closes every connection. Below `/moved` it redirects.
 */
async function startDroppingProxy(serviceUrl: string): Promise<LoopbackServer> {
  let count = 0;
  const server = createServer((request, response) => {
    const { url = '', method = '', headers } = request;
    const isPreflight = method === 'OPTIONS';
    if (!isPreflight) count++;
    if (url.startsWith('/moved') && !isPreflight)
      response.writeHead(307, { ...READABLE, Location: '/plants' }).end();
    else if (!isPreflight && (url.startsWith('/cut') || count === 2)) request.socket.destroy();
    else if (count === 1 && !isPreflight) {
      response.writeHead(503, READABLE).end('{"error":50301,"message":"busy"}');
    } else {
      const path = url.replace(/^\/(?:cut|moved)/, '');
      const behind = httpRequest(serviceUrl, { method, path, headers }, received => {
        response.writeHead(received.statusCode!, received.headers);
        received.pipe(response);
      });
      request.pipe(behind);
    }
  });
  return await listen(server);
}

/** Asserts that the plants of `useClient` are stored, with exact ids. */
async function assertStored({ database }: RunningService): Promise<void> {
  const { stdout } = await runProgram(['export', '--database', database, '--format', 'jsonl']);
  const lines = stdout.split('\n');
  for (const id of ['9007199254740993', '9223372036854775807', '-9223372036854775808'])
    assert.ok(lines.includes(`{"id":${id},"name":"exact 🌱","tag":""}`), id);
  // The export ends with a line end, so the last line is empty.
  assert.equal(lines.length, 3 + 1 + 1 + 500 + 1);
}

const program = join(testFolder(), 'program.mjs');
writeFileSync(
  program,
  `${script}\nconsole.log(JSON.stringify(await client.useClient({}, process.argv[2])));`,
);
for (const [name, [executable, ...args]] of RUNTIMES)
  test(`the client sends plants with exact ids, retries, and keeps their order in ${name}`, async () => {
    await using service = await startTestService();
    await using gateway = await startDroppingProxy(service.url);
    const { stdout } = await promisify(execFile)(executable!, [...args, program, gateway.url], {
      env: { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token },
      timeout: 60_000,
    });
    assert.deepEqual(JSON.parse(stdout), EXPECTED);
    await assertStored(service);
  });

test('the client does the same in a page of another origin than the service', {
  timeout: 120_000,
}, async () => {
  const html = `<!doctype html><link rel="icon" href="data:,"><script>${script}</script>`;
  await using page = await listen(
    createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(html)),
  );
  await using service = await startTestService({ corsOrigins: [page.url] });
  await using gateway = await startDroppingProxy(service.url);
  await using browser = await startBrowser();
  const { page: tab } = await browser.openPage();
  await tab.goto(page.url);
  const result = await tab.evaluate(
    ([url, token, droppingUrl]) => {
      const { client } = globalThis as unknown as { client: { useClient: typeof useClient } };
      return client.useClient({ url: url!, token: token! }, droppingUrl!);
    },
    [service.url, service.token, gateway.url],
  );
  assert.deepEqual(result, { ...EXPECTED, moved: 'undefined undefined is permanent' });
  await assertStored(service);
});
