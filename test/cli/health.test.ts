import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { test } from 'node:test';
import { commandProcess } from '../harness/command-lines.ts';
import { freePort } from '../harness/free-port.ts';
import { listen } from '../harness/loopback-server.ts';
import { startTestService } from '../harness/running-service.ts';

const commands = commandProcess();

async function health(ops: string | number): Promise<string> {
  const finished = await commands.run({ args: ['health'], env: { PLANT_STORE_OPS: String(ops) } });
  return Object.values(finished).join(' ');
}

test('health says in one line that a service is ready, or that none responds', async () => {
  await using service = await startTestService();
  const { port } = service.opsAddress;
  for (const host of ['0.0.0.0', 'localhost'])
    assert.equal(await health(`${host}:${port}`), '0 the service is ready\n ');
  const unused = await freePort();
  const none = /^1 {2}plant-store: no response from http:\S+\/readyz \(ECONNREFUSED\); start .* --ops\n$/;
  assert.match(await health(unused), none);
  assert.match(await health(`[::]:${unused}`), /^1 {2}plant-store: no response from http:\/\/\[::1\]:.*\n$/);
});

test('health reads the response of any program', async () => {
  const notReady = '{"status":"not ready","reason":"the store is away"}';
  const hostile = '{"status":"ready","warnings":["\\u001b[2J"]}';
  const programs: [listener: RequestListener, says: RegExp][] = [
    [
      (_, response) => response.writeHead(503).end(notReady),
      /^1 {2}plant-store: the service is not ready: the store is away\n$/,
    ],
    [() => {}, /no response from .* \(5 s\); .*\n$/],
    [
      (_, response) => response.writeHead(404).end(notReady),
      /^1 {2}plant-store: .* is not the operations listener of a plant store: it responds with status 404; .* --ops\n$/,
    ],
    [(_, response) => response.writeHead(302, { Location: '/ready' }).end(), / status 302; .* --ops\n$/],
    [
      (_, response) => {
        const send = () => response.write('x'.repeat(100_000), error => error || setImmediate(send));
        send();
      },
      /is not the operations listener of a plant store: .* status 200; .* --ops\n$/,
    ],
    [(_, response) => response.end(hostile), /^0 the service is ready; WARNING: \\u001b\[2J\n $/],
    [(_, response) => response.writeHead(500).end(hostile), / status 500; .* --ops\n$/],
    [
      (_, response) =>
        response.writeHead(200, { 'Content-Length': 100 }).write('{', () => response.destroy()),
      /no response from .*\n$/,
    ],
    [
      (_, response) => response.end('"ready"'),
      /is not the operations listener of a plant store: .* status 200; .* --ops\n$/,
    ],
  ];
  for (const [listener, says] of programs) {
    await using server = await listen(createServer(listener));
    assert.match(await health(server.port), says);
  }
});
