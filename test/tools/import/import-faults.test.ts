import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer as createSocketServer } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { commandProcess } from '../../harness/command-lines.ts';
import { errorBody, type Post, startFaulty } from '../../harness/faulty-service.ts';
import { freePort } from '../../harness/free-port.ts';
import { listen } from '../../harness/loopback-server.ts';
import { assertFailed, type Finished, startCommand } from '../../harness/program.ts';
import { testFolder } from '../../harness/test-folder.ts';

const commands = commandProcess();

function serviceArgs(url: string): string[] {
  return ['--url', url, '--token', 'plant_test'];
}

/** Creates a CSV file with this many rows, whose ids count from 1. @returns it, and a name beside it */
async function newFile(rows: number): Promise<[file: string, rejects: string]> {
  const folder = testFolder();
  const file = join(folder, 'plants.csv');
  const lines = Array.from({ length: rows }, (_, index) => `${index + 1},name ${index + 1}\n`);
  await writeFile(file, `id,name\n${lines.join('')}`);
  return [file, join(folder, 'rejects')];
}

async function importRows(
  url: string,
  rows: number,
  args: string[] = [],
): Promise<Finished & { rejects: string }> {
  const [file, rejects] = await newFile(rows);
  const command = ['import', ...serviceArgs(url), '--rejects', rejects, ...args, file];
  const finished = await commands.run({ args: command });
  return { ...finished, rejects: await readFile(rejects, 'utf8').catch(() => '') };
}

/** What a server sends, and what the terminal and the rejects file show. */
const EVIL = '\u001b]0;evil\u0007\u009b2J\r\nnext plant_test';
const SHOWN = String.raw`\u001b]0;evil\u0007\u009b2J\u000d\u000anext <ACCESS_TOKEN>`;

suite('import to a server with scripted faults', { concurrency: 4 }, () => {
  test('import waits for a service that stops and starts again, and reports each once', async () => {
    const stored = new Set<string>();
    const write = (post: Post): void => {
      stored.add(post.body);
      post.store();
    };
    const { promise: gone, resolve: goAway } = Promise.withResolvers<void>();
    const first = await startFaulty(post => {
      if (post.number < 50) write(post);
      else goAway();
    });
    const [file] = await newFile(500);
    const { child, finished } = startCommand(['import', ...serviceArgs(first.url), file]);
    const said = once(child.stderr!, 'data');
    await gone;
    await first[Symbol.asyncDispose]();
    // The report comes after a second. Without it the service starts again, and the match fails.
    await Promise.race([said, wait(20_000, undefined, { ref: false })]);
    await using _back = await startFaulty(write, first.port);
    const { stdout, stderr, exitCode } = await finished;
    assert.match(
      stderr,
      /^the service does not respond \(\w+\); retrying for up to 5 minutes…\nthe service is available again after [0-9.]+ s; the import continues\n$/,
    );
    assert.match(stdout, /^500 rows: 500 created/);
    assert.deepEqual([exitCode, stored.size], [0, 500]);
  });

  test('an error of one row rejects only that row, and a row without a response is sent again', async () => {
    const numbers = [40001, 40002, 40003, 41301];
    await using server = await startFaulty(post => {
      const number = numbers[post.number - 2];
      if (number !== undefined) post.respond(Math.floor(number / 100), errorBody(number, EVIL));
      else if (post.number === 6) post.request.socket.destroy();
      else if (post.number === 7) post.respond(503);
      else if (post.number === 8) post.respond(400, errorBody(40003, 'taken'));
      else post.store();
    });
    const { exitCode, stdout, rejects } = await importRows(server.url, 10, ['--in-flight', '1']);
    assert.match(stdout, /^10 rows: 5 created, 0 unchanged, 0 replaced, 5 rejected/);
    const rows = numbers.map((number, index) => {
      const row = index + 2;
      return `${row},name ${row},${row + 1},${row},${number},${SHOWN}\n`;
    });
    const unknown = '"taken; an earlier attempt was not confirmed, so the plant may be stored"';
    assert.equal(rejects, `id,name,line,row,error,message\n${rows.join('')}6,name 6,7,6,40003,${unknown}\n`);
    assert.equal(exitCode, 1);
  });

  test('one line reports at once that no service runs at the address', async () => {
    const free = await importRows(`http://127.0.0.1:${await freePort()}`, 1000);
    assertFailed(
      free,
      /^plant-store: no service responds at http:\/\/127\.0\.0\.1:[0-9]+\/ \(ECONNREFUSED\); start one with: .*\n$/,
    );
    await using ssh = await listen(createSocketServer(socket => socket.end('SSH-2.0-OpenSSH\r\n\r\n')));
    const other = await importRows(ssh.url, 10);
    assertFailed(
      other,
      /^plant-store: no response from http:\/\/127\S+\/plants; the server did not respond with HTTP \(EPROTO\); check the address\n$/,
    );
  });

  const EACH = /responds with 4[0-9]{2} \(every one\); check whether a proxy .* changes requests\n$/;
  const STOPS: [what: string, response: Parameters<Post['respond']>, RegExp][] = [
    [
      '401',
      [401, errorBody(40102, 'no')],
      /^plant-store: the service rejects the token of --token: no; or create a token with: /,
    ],
    [
      '404',
      [404, errorBody(40401, 'no path')],
      /^plant-store: no path; check the option url, .* without \/plants: http:\/\/127\.0\.0\.1:[0-9]+\/\n$/,
    ],
    [
      'an error of a proxy',
      [418, errorBody(7, EVIL)],
      /418: \\u001b\]0;evil\\u0007\\u009b2J\\u000d\\u000anext <ACCESS_TOKEN>/,
    ],
    ['error 40000', [400, errorBody(40000, 'every one')], EACH],
    ['error 41501', [415, errorBody(41501, 'every one')], EACH],
  ];
  for (const [what, response, expected] of STOPS) {
    test(`${what} stops the import, and the summary counts the stored rows`, async () => {
      await using server = await startFaulty(post => {
        if (post.number <= 20) post.store();
        else post.respond(...response);
      });
      const { exitCode, stdout, stderr, rejects } = await importRows(server.url, 2_000, ['--in-flight', '8']);
      assert.match(stderr, expected);
      assert.equal(rejects, '');
      assert.doesNotMatch(stderr, /\n./);
      assert.match(stdout, /^20 rows: 20 created, 0 unchanged, 0 replaced, 0 rejected/);
      assert.equal(exitCode, 1);
      assert.ok(server.count() < 100, `${server.count()} requests were sent`);
    });
  }

  test('SIGINT, also sent twice, ends an import after the plants in flight and writes all rejects', async () => {
    const waiting: Post[] = [];
    let isStopped = false;
    const { promise: full, resolve: onFull } = Promise.withResolvers<void>();
    await using server = await startFaulty(post => {
      if (post.number === 1) post.respond(400, errorBody(40003, 'taken'));
      else if (post.number <= 10 || isStopped) post.store();
      else if (waiting.push(post) === 3) onFull();
    });
    const [file, rejects] = await newFile(10_000);
    const args = [...serviceArgs(server.url), '--in-flight', '3', '--rejects', rejects, file];
    const { child, finished } = startCommand(['import', ...args]);
    await full;
    child.kill('SIGINT');
    child.kill('SIGINT');
    // The program waits 5 s for responses. On a busy machine it may send more before the signal.
    await wait(1_000);
    isStopped = true;
    for (const post of waiting) post.store();
    const { exitCode, stdout, stderr } = await finished;
    assert.equal(exitCode, 130);
    const [, rows, created] = /^(\d+) rows: (\d+) created, 0 unchanged, 0 replaced, 1 rejected/.exec(stdout)!;
    assert.deepEqual([Number(rows), Number(created) + 1], [server.count(), server.count()]);
    assert.ok(server.count() < 10_000);
    assert.match(stderr, /^plant-store: stopped; .*you can safely run the import again\n$/);
    assert.equal(
      await readFile(rejects, 'utf8'),
      'id,name,line,row,error,message\n1,name 1,2,1,40003,taken\n',
    );
  });

  test('SIGINT ends an import that waits for standard input', async () => {
    const { promise: stored, resolve: onStored } = Promise.withResolvers<void>();
    await using server = await startFaulty(post => {
      post.store();
      onStored();
    });
    const { child, finished } = startCommand(['import', ...serviceArgs(server.url), '-']);
    child.stdin!.write('id,name\n1,a\n2,b\n');
    await stored;
    child.kill('SIGINT');
    const { exitCode, stdout } = await finished;
    assert.equal(exitCode, 130);
    assert.match(stdout, /^[12] rows?: [12] created/);
  });

  test('SIGINT ends a dry run that waits for the writer of a FIFO', async () => {
    const [file, fifo] = await newFile(1);
    await promisify(execFile)('mkfifo', [fifo]);
    await writeFile(file, 'id,name,note\n');
    const { child, finished } = startCommand(['import', '--dry-run', file, fifo]);
    // A note about the first file. After it, nothing shows that the FIFO is being opened.
    await once(child.stderr!, 'data');
    await wait(500);
    child.kill('SIGINT');
    assert.equal((await finished).exitCode, 130);
  });

  test('without responses the import reads no further, so its memory use does not grow', async () => {
    const waiting: Post[] = [];
    const { promise: full, resolve: onFull } = Promise.withResolvers<void>();
    let holds = true;
    await using server = await startFaulty(post => {
      if (!holds) post.store();
      else if (waiting.push(post) === 64) onFull();
    });
    const { child, finished } = startCommand([
      'import',
      ...serviceArgs(server.url),
      '--in-flight',
      '64',
      '-',
    ]);
    const name = 'x'.repeat(20_000);
    const lines = Array.from({ length: 1_600 }, (_, id) => `{"id":${id},"name":"${name}"}\n`);
    let taken = false;
    child.stdin!.end(lines.join(''), () => {
      taken = true;
    });
    await full;
    await wait(1_000);
    assert.equal(taken, false, 'all 32 MB were read with 64 rows in flight');
    assert.equal(waiting.length, 64);
    holds = false;
    for (const post of waiting) post.store();
    const { exitCode, stdout } = await finished;
    assert.equal(exitCode, 0);
    assert.match(stdout, /^1,600 rows: 1,600 created/);
  });
});
