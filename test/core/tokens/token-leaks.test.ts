import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { hashToken, makeToken } from '../../../src/core/tokens/token.ts';
import { freePort } from '../../harness/free-port.ts';
import { runProgram, startServe } from '../../harness/program.ts';
import { RawConnection, type RequestParts, requestBytes } from '../../harness/raw-connection.ts';
import { addToken } from '../../harness/running-service.ts';
import { testFolder } from '../../harness/test-folder.ts';

const folder = testFolder();

/** A response may repeat less than half of a token that was sent as something else. */
const SHOWN_MAX = 20;

/** Requests with the token in every place except a plant's name and tag. */
function waysToSend(token: string): Buffer[] {
  const bodies = [
    `{"id":1,"name":"A","access_token":"${token}"}`,
    `{"id":1,"name":"A","tag":"B"}${token}`,
    `{"id":1,"name":"${token}`,
    `{"id":"${token}","name":"A"}`,
    `{"id":1,"name":["${token}"]}`,
    `{"id":1,"name":"A","${token}":1,"${token}":2}`,
    token,
  ];
  const credentials = [
    token,
    `Basic ${token}`,
    `Bearer "${token}"`,
    `Bearer ${token} ${token}`,
    `Bearer ${token},`,
  ];
  const targets = ['/plants?access_token=', '/plants/', '/%zz', '/plants#', ''].map(start => start + token);
  const headers: NonNullable<RequestParts['headers']>[] = [
    {},
    { Authorization: `bearer  ${token}` },
    ...credentials.map(Authorization => ({ Authorization })),
    { Authorization: [`Bearer ${token}`, `Bearer ${token}`] },
    { 'Proxy-Authorization': `Bearer ${token}`, 'X-Api-Key': token, Cookie: `token=${token}` },
    { [token]: 'a' },
    { Host: token },
    { Host: `${token}@a` },
    { 'Content-Type': token },
    { 'Content-Type': `application/json; charset=${token}` },
    { 'Content-Length': token },
    { 'Transfer-Encoding': token },
    { 'X-Padding': token.repeat(500) },
  ];
  const requests: RequestParts[] = [
    ...headers.map(fields => ({ headers: fields })),
    { method: token },
    { version: token },
    ...[...targets, `http://${token}@a/plants`].map(target => ({ target })),
    ...bodies.map(body => ({ body })),
    { headers: { 'Content-Length': null, 'Transfer-Encoding': 'chunked' }, body: `${token}\r\n` },
  ];
  return [
    ...requests.map(parts => requestBytes(token, parts)),
    Buffer.concat([requestBytes(token), Buffer.from(`${token}\r\n\r\n`)]),
    Buffer.from(`${token}\r\n\r\n`),
  ];
}

/** @returns all responses, until the service closes its side */
async function responsesTo(port: number, bytes: Uint8Array): Promise<string> {
  using connection = await RawConnection.open(port);
  connection.write(bytes);
  connection.finish();
  await connection.ended;
  return connection.unread;
}

test('no token appears in logs, responses, files of the store or the process list, wherever a client puts it', async () => {
  const database = `sqlite:${join(folder, 'plants.db')}`;
  const good = await addToken(database, 'good');
  const expired = await addToken(database, 'expired', 2);
  const revoked = await addToken(database, 'revoked');
  await runProgram(['token', 'revoke', 'revoked', '--database', database]);
  // One is unknown, and the last one has a wrong checksum.
  const tokens = [good, expired, revoked, makeToken(), `${makeToken().slice(0, -6)}000000`];

  const opsPort = await freePort();
  await using serve = await startServe(database, ['--ops', `127.0.0.1:${opsPort}`, '--ops-host', 'a']);
  const seen: { place: string; text: string }[] = [];
  const seeFiles = (folder: string, names = readdirSync(folder)): void => {
    for (const place of names.map(name => join(folder, name)))
      seen.push({ place, text: readFileSync(place, 'latin1') });
  };
  const readings = ['/readyz', '/livez', '/metrics'].map(path =>
    Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`),
  );
  const requests = [...tokens.flatMap(waysToSend), ...readings];
  for (const port of [Number(new URL(serve.url).port), opsPort]) {
    const texts = await Promise.all(requests.map(bytes => responsesTo(port, bytes)));
    seen.push(...texts.map(text => ({ place: `a response of port ${port}`, text })));
  }
  const processFolder = `/proc/${serve.child.pid}`;
  // Only Linux provides them as files.
  if (existsSync(processFolder)) seeFiles(processFolder, ['cmdline', 'environ']);
  seeFiles(folder);
  const { exitCode, stdout, stderr } = await serve.stop('SIGTERM');
  assert.equal(exitCode, 0);
  assert.ok(!stdout.includes('"msg":"request completed"'), 'no request is logged by default');
  seeFiles(folder);
  seen.push({ place: 'stdout', text: stdout }, { place: 'stderr', text: stderr });

  const hasSeen = (text: string): boolean => seen.some(reading => reading.text.includes(text));
  for (const text of ['"name":"A"', 'HTTP/1.1 431', hashToken(good)]) assert.ok(hasSeen(text), text);
  for (const { place, text } of seen)
    for (const token of tokens)
      for (const part of [token.slice(0, SHOWN_MAX + 1), token.slice('plant_'.length)])
        assert.ok(!text.includes(part), `${part.slice(0, 9)}… in ${place}: ${text.slice(0, 500)}`);
});
