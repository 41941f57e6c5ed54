import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommandLines } from '../harness/command-lines.ts';
import { freePort } from '../harness/free-port.ts';
import { listen } from '../harness/loopback-server.ts';
import { sendPlant, startServe } from '../harness/program.ts';
import { testFolder } from '../harness/test-folder.ts';
import { until } from '../harness/until.ts';

const folder = testFolder();
const [port, unused] = [await freePort(), await freePort()];

test('health says in one line whether plants can be stored, or why not', async () => {
  const path = join(folder, 'plants.db');
  await using service = await startServe(`sqlite:${path}`, ['--ops', `0.0.0.0:${port}`]);
  assert.equal(await sendPlant(service.url, service.token, 1n), 200);
  await using silent = await listen(createTcpServer());
  await using other = await listen(createServer((_, response) => response.end('"ready"')));
  // Other programs, by the path that they redirect to or the body that they send without end.
  await using redirecting = await listen(
    createServer((_, response) =>
      response.writeHead(302, { Location: `http://127.0.0.1:${port}/readyz` }).end(),
    ),
  );
  await using endless = await listen(
    createServer((_, response) => {
      const send = () => response.write('x'.repeat(100_000), error => error || setImmediate(send));
      send();
    }),
  );
  const hostile = '{"status":"ready","warnings":["\\u001b[2J"]}';
  await using escaping = await listen(createServer((_, response) => response.end(hostile)));
  await using failing500 = await listen(createServer((_, response) => response.writeHead(500).end(hostile)));
  await using cut = await listen(
    createServer((_, response) => {
      response.writeHead(200, { 'Content-Length': 100 }).write('{');
      setTimeout(() => response.destroy(), 100);
    }),
  );

  const health = async (ops: string | number) => {
    const env = { PLANT_STORE_OPS: String(ops) };
    const [finished] = await runCommandLines([{ args: ['health'], env }], folder);
    return Object.values(finished!).join(' ');
  };
  const files = ['', '-wal', '-shm'].map(suffix => `${path}${suffix}`);
  for (const file of files) renameSync(file, `${file}.away`);
  assert.equal(await sendPlant(service.url, service.token, 2n), 503);
  const failing = /^1 {2}plant-store: the service is not ready: the store cannot be used now; .*\n$/;
  await until('the service is not ready', async () => failing.test(await health(port)));
  for (const file of files) renameSync(`${file}.away`, file);
  await until('plants are stored', async () => (await sendPlant(service.url, service.token, 2n)) === 200);
  const ready = /^0 the service is ready\n $/;
  await until('the warning ends', async () => ready.test(await health(`0.0.0.0:${port}`)));

  const cases: [ops: string | number, says: RegExp][] = [
    [`localhost:${port}`, ready],
    [unused, /^1 {2}plant-store: no response from http:\S+\/readyz \(ECONNREFUSED\); start .* --ops\n$/],
    [`[::]:${unused}`, /^1 {2}plant-store: no response from http:\/\/\[::1\]:.*\n$/],
    [silent.port, /^1 {2}plant-store: no response from .* \(5 s\); .*\n$/],
    [redirecting.port, /^1 {2}plant-store: .* is not of a plant store: .* status 302; .* --ops\n$/],
    [endless.port, /^1 {2}plant-store: .* is not of a plant store: .* status 200; .* --ops\n$/],
    [escaping.port, /^0 the service is ready; WARNING: \\u001b\[2J\n $/],
    [failing500.port, /^1 {2}plant-store: .* is not of a plant store: .* status 500; .* --ops\n$/],
    [cut.port, /^1 {2}plant-store: no response from .*\n$/],
    [other.port, /^1 {2}plant-store: .* is not of a plant store: it responds with status 200; .* --ops\n$/],
    [new URL(service.url).port, /^1 {2}plant-store: .* is not of a plant store: .* status 404; .* --ops\n$/],
  ];
  for (const [ops, says] of cases) assert.match(await health(ops), says);
});
