import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { PIPELINE_MAX } from '../src/client/limits.ts';
import { type Finished, runProgram } from './harness/program.ts';
import { type Arrived, idOf, STORED, store, withServer } from './scripted-server.ts';

/** Imports rows whose ids count from 1. */
async function importRows(
  rows: number,
  script: (arrived: Arrived) => void,
): Promise<Finished & { connections: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-pipelining-'));
  try {
    const file = join(folder, 'plants.csv');
    const lines = Array.from({ length: rows }, (_, index) => `${index + 1},name ${index + 1}\n`);
    await writeFile(file, `id,name\n${lines.join('')}`);
    return await withServer(script, url =>
      runProgram(['import', '--url', url, '--token', 'plant_test', file], { cwd: folder }),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

suite('import over connections that carry many plants', { concurrency: 4 }, () => {
  test('a connection carries one plant until it has answered, and then many', async () => {
    const first = new Set<number>();
    let most = 0;
    const { stdout, connections } = await importRows(2000, arrived => {
      const count = arrived.requests.length;
      if (!first.has(arrived.connection)) assert.equal(count, 1);
      first.add(arrived.connection);
      most = Math.max(most, count);
      // Later, so that whatever else is sent at once has arrived.
      setTimeout(() => store(arrived, arrived.requests.length), 5);
    });
    assert.match(stdout, /^2,000 rows: 2,000 created/);
    assert.equal(most, PIPELINE_MAX);
    assert.ok(connections <= 64, `${connections} connections`);
  });

  test('behind a gateway that closes the connection after each answer every plant is sent once', async () => {
    const sent: string[] = [];
    const { stdout, connections } = await importRows(500, arrived => {
      sent.push(...arrived.requests.map(idOf));
      store(arrived, 1, 'Connection: close\r\n');
      arrived.socket.end();
    });
    assert.match(stdout, /^500 rows: 500 created/);
    assert.equal(sent.length, 500);
    assert.equal(connections, 500);
  });

  test('a connection cut in the middle of an answer leads to the plants behind it being sent again', async () => {
    const answered = new Set<string>();
    let pieces = 0;
    const { stdout, exitCode } = await importRows(2000, arrived => {
      const { requests, socket } = arrived;
      if (++pieces % 17 !== 0) {
        for (const request of requests) answered.add(idOf(request));
        return store(arrived, requests.length);
      }
      answered.add(idOf(requests[0]!));
      store(arrived, 1);
      socket.end(`${STORED}Plant-I`);
    });
    assert.match(stdout, /^2,000 rows: 2,000 created/);
    assert.equal(exitCode, 0);
    assert.equal(answered.size, 2000);
  });

  test('a server that speaks something else is named', async () => {
    const { stderr, exitCode } = await importRows(10, ({ socket }) =>
      socket.write('SSH-2.0-OpenSSH\r\n\r\n'),
    );
    assert.match(
      stderr,
      /^plant-store: no answer from http:\/\/127\S+\/plants; what listens there takes no HTTP \(EPROTO\); check the address\n$/,
    );
    assert.equal(exitCode, 1);
  });
});
