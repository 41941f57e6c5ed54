import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeToken } from '../src/auth/token.ts';
import { type ServeProcess, startServe } from './harness/program.ts';
import { chunked, RawConnection, type RequestParts, requestBytes } from './harness/raw-connection.ts';

const NAME = 'Quercus-of-the-log';
const ID = '9007199254740993';
const UNKNOWN_TOKEN = makeToken();
const BODY = `{"id":${ID},"name":"${NAME}"}`;

const folder = mkdtempSync(join(tmpdir(), 'plant-store-request-log-'));
const started: ServeProcess[] = [];
after(() => {
  // What a failed test has left behind would keep this process alive.
  for (const { child } of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

const REQUESTS: RequestParts[] = [
  { body: BODY },
  chunked(BODY),
  { body: '{"id":1}' },
  { headers: { Authorization: `Bearer ${UNKNOWN_TOKEN}` }, body: BODY },
  { target: `/${NAME}?${NAME}`, body: BODY },
  { version: `1.1\r\n${NAME}` },
];

/** Runs a service, sends it the requests, and ends it. @returns what it wrote to its log, and its token */
async function logOf(name: string, args: string[]): Promise<{ log: string; token: string }> {
  const serve = await startServe(`sqlite:${join(folder, name)}`, args);
  started.push(serve);
  for (const parts of REQUESTS) {
    using connection = await RawConnection.open(Number(new URL(serve.url).port));
    connection.write(requestBytes(serve.token, parts));
    await connection.answer();
  }
  const { stdout } = await serve.stop('SIGTERM');
  return { log: stdout, token: serve.token };
}

test('--log-requests gives each request one line, with nothing secret in it', async () => {
  const { log, token } = await logOf('asked.db', ['--log-requests', 'on']);
  const lines = log
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === 'answered')
    .map(({ level, msg, time, durationMs, ...line }) => {
      // What was no request took no time.
      assert.equal(line.result === 'badHttp', !((durationMs as number) > 0));
      assert.ok(!Number.isNaN(Date.parse(time as string)));
      return line;
    });
  const remoteAddress = '127.0.0.1';
  const bodyBytes = BODY.length;
  assert.deepEqual(lines, [
    { status: 200, result: 'created', id: ID, bodyBytes, remoteAddress },
    { status: 200, result: 'unchanged', id: ID, bodyBytes, remoteAddress },
    { status: 400, result: 'notNewPlant', error: 40002, bodyBytes: 8, remoteAddress },
    { status: 401, result: 'credentialRefused', error: 40102, bodyBytes: 0, remoteAddress },
    { status: 404, result: 'noSuchPath', error: 40401, bodyBytes: 0, remoteAddress },
    { status: 400, result: 'badHttp', error: 40000, bodyBytes: 0, remoteAddress },
  ]);
  for (const secret of [NAME, token, UNKNOWN_TOKEN]) assert.ok(!log.includes(secret), secret);
});

test('unless it is asked for, no request is in the log', async () => {
  const { log, token } = await logOf('not-asked.db', []);
  const messages = log
    .trimEnd()
    .split('\n')
    .map(line => (JSON.parse(line) as { msg: string }).msg);
  assert.deepEqual(messages, ['serving', 'shutting down: answering what was taken', 'stopped']);
  for (const secret of [NAME, token, UNKNOWN_TOKEN]) assert.ok(!log.includes(secret), secret);
});
