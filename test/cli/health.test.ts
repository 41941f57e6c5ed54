import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { commandProcess } from '../harness/command-lines.ts';
import { freePort } from '../harness/free-port.ts';
import { listen } from '../harness/loopback-server.ts';
import { sendPlant, startServe } from '../harness/program.ts';
import { testFolder } from '../harness/test-folder.ts';
import { until } from '../harness/until.ts';

const folder = testFolder();
const [port, unused] = [await freePort(), await freePort()];
const commands = commandProcess(folder);

async function health(ops: string | number): Promise<string> {
  const finished = await commands.run({ args: ['health'], env: { PLANT_STORE_OPS: String(ops) } });
  return Object.values(finished).join(' ');
}

const ready = /^0 the service is ready\n $/;

test('health says in one line whether plants can be stored, or why not', async () => {
  const path = join(folder, 'plants.db');
  await using service = await startServe(`sqlite:${path}`, ['--ops', `0.0.0.0:${port}`]);
  assert.equal(await sendPlant(service.url, service.token, 1n), 200);
  const files = ['', '-wal', '-shm'].map(suffix => `${path}${suffix}`);
  for (const file of files) renameSync(file, `${file}.away`);
  assert.equal(await sendPlant(service.url, service.token, 2n), 503);
  const failing = /^1 {2}plant-store: the service is not ready: the store cannot be used now; .*\n$/;
  await until('the service is not ready', async () => failing.test(await health(port)));
  for (const file of files) renameSync(`${file}.away`, file);
  await until('plants are stored', async () => (await sendPlant(service.url, service.token, 2n)) === 200);
  await until('the warning ends', async () => ready.test(await health(`0.0.0.0:${port}`)));
  assert.match(await health(`localhost:${port}`), ready);
  const notOps = /^1 {2}plant-store: .* is not of a plant store: it responds with status 404; .* --ops\n$/;
  assert.match(await health(new URL(service.url).port), notOps);
  const none = /^1 {2}plant-store: no response from http:\S+\/readyz \(ECONNREFUSED\); start .* --ops\n$/;
  assert.match(await health(unused), none);
  assert.match(await health(`[::]:${unused}`), /^1 {2}plant-store: no response from http:\/\/\[::1\]:.*\n$/);
});

test('health reads the response of any program', async () => {
  const hostile = '{"status":"ready","warnings":["\\u001b[2J"]}';
  const programs: [listener: RequestListener, says: RegExp][] = [
    [() => {}, /no response from .* \(5 s\); .*\n$/],
    [(_, response) => response.writeHead(302, { Location: '/ready' }).end(), / status 302; .* --ops\n$/],
    [
      (_, response) => {
        const send = () => response.write('x'.repeat(100_000), error => error || setImmediate(send));
        send();
      },
      /is not of a plant store: .* status 200; .* --ops\n$/,
    ],
    [(_, response) => response.end(hostile), /^0 the service is ready; WARNING: \\u001b\[2J\n $/],
    [(_, response) => response.writeHead(500).end(hostile), / status 500; .* --ops\n$/],
    [
      (_, response) =>
        response.writeHead(200, { 'Content-Length': 100 }).write('{', () => response.destroy()),
      /no response from .*\n$/,
    ],
    [(_, response) => response.end('"ready"'), /is not of a plant store: .* status 200; .* --ops\n$/],
  ];
  for (const [listener, says] of programs) {
    await using server = await listen(createServer(listener));
    assert.match(await health(server.port), says);
  }
});
