import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeToken } from '../../src/core/tokens/token.ts';
import { startServe } from '../harness/program.ts';
import { ask, chunked, RawConnection, type RequestParts, requestBytes } from '../harness/raw-connection.ts';
import { testFolder } from '../harness/test-folder.ts';
import { until } from '../harness/until.ts';

const NAME = 'Quercus-of-the-log';
const ID = '9007199254740993';
const UNKNOWN_TOKEN = makeToken();
const BODY = `{"id":${ID},"name":"${NAME}"}`;

const REQUESTS: RequestParts[] = [
  { body: BODY },
  chunked(BODY),
  { body: '{"id":1}' },
  { headers: { Authorization: `Bearer ${UNKNOWN_TOKEN}` }, body: BODY },
  { target: `/elsewhere/${UNKNOWN_TOKEN}?${NAME}`, body: BODY },
  { target: `/%zz/${UNKNOWN_TOKEN.replace('_', '%5F')}`, body: BODY },
  { target: `/%zz/${UNKNOWN_TOKEN.replace('p', '%70')}`, body: BODY },
  // A control sequence that clears the screen of a terminal, and a change of the direction of text.
  { target: '/%C2%9B2J%1b%E2%80%AE%7F', body: BODY },
  { method: 'PUT', body: BODY },
  { version: `1.1\r\n${NAME}` },
];

test('--log-requests writes one line per request, without secrets, and counts lost lines', async () => {
  await using serve = await startServe(`sqlite:${join(testFolder(), 'plants.db')}`, ['--log-requests', 'on']);
  const { token, url } = serve;
  const port = Number(new URL(url).port);
  for (const parts of REQUESTS) await ask(port, token, parts);
  // Nobody reads the log. The lines are far longer than the buffers of a pipe and its reader.
  serve.child.stdout!.pause();
  using connection = await RawConnection.open(port);
  let requests = REQUESTS.length;
  const send = async (count: number): Promise<void> => {
    connection.write(Buffer.concat(Array(count).fill(requestBytes(token))));
    for (let responses = 0; responses < count; responses++, requests++) await connection.response();
  };
  for (let round = 0; round < 8; round++) await send(500);
  serve.child.stdout!.resume();
  await until('the log counts the lost lines', async () => {
    await send(1);
    return serve.logged().some(line => line.includes('"lostLines"'));
  });
  const { stdout: log } = await serve.stop('SIGTERM');
  const all = log
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, unknown>);
  const written = all.filter(({ msg }) => msg === 'request completed');
  const lost = all.reduce((sum, { lostLines = 0 }) => sum + (lostLines as number), 0);
  // A lost line may also be another one of the service, such as a warning.
  const others = written.length + lost - requests;
  assert.ok(others >= 0 && others <= 3, `${written.length} written, ${lost} lost, ${requests} requests`);
  const lines = written.slice(0, REQUESTS.length).map(({ level, msg, time, durationMs, ...line }) => {
    // Bytes that are not a request have no duration.
    assert.equal(line.result === 'badHttp', !((durationMs as number) > 0));
    assert.ok(!Number.isNaN(Date.parse(time as string)));
    return line;
  });
  const remoteAddress = '127.0.0.1';
  const bodyBytes = BODY.length;
  const to = (path: string, method = 'POST') => ({ method, path });
  assert.deepEqual(lines, [
    { ...to('/plants'), status: 200, result: 'created', id: ID, bodyBytes, remoteAddress },
    { ...to('/plants'), status: 200, result: 'unchanged', id: ID, bodyBytes, remoteAddress },
    { ...to('/plants'), status: 400, result: 'notNewPlant', error: 40002, bodyBytes: 8, remoteAddress },
    { ...to('/plants'), status: 401, result: 'tokenRejected', error: 40102, bodyBytes: 0, remoteAddress },
    ...['/elsewhere/plant_…', '/%zz/plant_…', '/%zz/plant_…', '/%C2%9B2J%1B%E2%80%AE%7F'].map(path => ({
      ...to(path),
      status: 404,
      result: 'noSuchPath',
      error: 40401,
      bodyBytes: 0,
      remoteAddress,
    })),
    {
      ...to('/plants', 'PUT'),
      status: 405,
      result: 'methodNotAllowed',
      error: 40501,
      bodyBytes: 0,
      remoteAddress,
    },
    { status: 400, result: 'badHttp', error: 40000, bodyBytes: 0, remoteAddress },
  ]);
  for (const secret of [NAME, token, UNKNOWN_TOKEN]) assert.ok(!log.includes(secret), secret);
});
