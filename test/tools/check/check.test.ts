import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createNetServer, type Server } from 'node:net';
import { test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import type { RuleResult } from '../../../tools/check/report.ts';
import { RULES } from '../../../tools/check/rules.ts';
import { commandProcess } from '../../harness/command-lines.ts';
import { freePort } from '../../harness/free-port.ts';
import { listen } from '../../harness/loopback-server.ts';
import { assertFailed, type Finished, startCommand } from '../../harness/program.ts';
import { startTestService } from '../../harness/running-service.ts';
import { type ForeignResponse, startForeignStore, TOKEN } from './foreign-plant-store.ts';

/** Rules about a plant id, which may be outside `--ids`. */
const WITH_PLANT_ID = RULES.filter(({ plantId }) => plantId !== undefined).map(({ id }) => id);

const commands = commandProcess();

function check(url: string, args: string[] = ['--yes'], token = TOKEN): Promise<Finished> {
  return commands.run({ args: ['check', url, ...args], env: { PLANT_STORE_TOKEN: token } });
}

test('each rule holds for the service, in two runs', async () => {
  await using service = await startTestService();
  for (let run = 1; run <= 2; run++) {
    const { exitCode, stdout } = await check(service.url, ['--yes'], service.token);
    assert.equal(exitCode, 0, stdout);
    assert.ok(stdout.endsWith(`\n${RULES.length} rules hold, 0 do not, 0 not checked\n`), stdout);
  }
});

test('one cause is one line with a count, with the first request and response', async () => {
  const respond = (usual: ForeignResponse) => ({ ...usual, status: usual.status === 200 ? 201 : 400 });
  await using store = await startForeignStore({ respond });
  const { exitCode, stdout, stderr } = await check(store.url);
  assert.equal(exitCode, 1);
  const created = RULES.filter(({ level, response }) => level === 'MUST' && response !== 'a rejection');
  const line = `does not hold  MUST    status 201 instead of 200 (${created.length} rules: create.status, `;
  assert.deepEqual(stdout.match(/^.*status 201.* create\.status, /gm), [line]);
  assert.match(stdout, /\n {4}POST \/plants\n(?: {4}.+\n)+\n {4}\{"id":\d+,"name":"A","tag":"B"\}\n/);
  assert.match(stdout, /\n {4}201 Created\n(?: {4}.+\n)+\n {4}\{"name":"A","tag":"B"\}\n/);
  assert.ok(stderr.endsWith(`plant-store: MUST rules that do not hold: ${created.length}\n`));
});

test('a SHOULD that does not hold is named, and does not fail the check', async () => {
  const accepts = ({ authorization = '' }) => authorization.toLowerCase() === `bearer ${TOKEN}`;
  await using store = await startForeignStore({ accepts });
  const { exitCode, stdout } = await check(store.url);
  assert.match(stdout, /\ndoes not hold {2}SHOULD {2}status 200 .* \(1 rule: media-type\.other\)\n/);
  assert.equal(exitCode, 0);
});

test('a second request is not checked if the server says that it closes the connection', async () => {
  const headers = { 'content-type': 'application/json', Connection: 'close' };
  await using store = await startForeignStore({ respond: usual => ({ ...usual, headers }) });
  const { exitCode, stdout } = await check(store.url);
  assert.match(stdout, /^not checked {4}MUST {4}http\.second-request: .*; the server says that it closes /m);
  assert.equal(exitCode, 0);
});

test('docs/check.md has each rule in one row, with its level and whether it is our own', () => {
  const text = readFileSync(new URL('../../../docs/check.md', import.meta.url), 'utf8');
  const rows = [...text.matchAll(/^\| (`.*`) \| (.*?) \| (MUST|SHOULD)/gm)].map(([, ids, source, level]) => {
    const patterns = [...ids!.matchAll(/`(.+?)`/g)].map(([, id]) => id!.replace('*', ''));
    return { patterns, isOurs: source!.includes('our own'), level };
  });
  for (const { id, level, source } of RULES) {
    const found = rows.filter(({ patterns }) =>
      patterns.some(each => each === id || (each.endsWith('.') && id.startsWith(each))),
    );
    assert.deepEqual(
      found.map(row => [row.level, row.isOurs]),
      [[level, source.includes('our own')]],
      id,
    );
  }
});

test('it sends nothing without --ids and --yes, and only ids of --ids', async () => {
  await using store = await startForeignStore();
  const question =
    /^plant-store: choose ids with --ids .*--yes: .*store up to \d+ plants .*: ids \d+ to \d+, and 0, -1, /;
  assertFailed(await check(store.url, []), question, 2);
  // One for the first contact and one for each rule without an id. -1 and 0 are ids of rules.
  const to = RULES.length - WITH_PLANT_ID.length + 1;
  const few = await check(store.url, ['--ids', `0..${to - 1}`]);
  assert.deepEqual([few.exitCode, few.stdout, store.requests()], [2, '', 0]);
  assert.ok(
    few.stderr.includes(`0..${to - 1} contains ${to} ids, but the rules need ${to + 1};`),
    few.stderr,
  );

  const { exitCode, stdout, stderr } = await check(store.url, ['--ids', `-1..${to}`]);
  const skipped = stdout.match(/(?<=^not checked {4}MUST {4})[^:]+/gm);
  const inside = ['create.id.zero', 'create.id.negative'];
  assert.deepEqual([exitCode, skipped], [0, WITH_PLANT_ID.filter(id => !inside.includes(id))]);
  assert.match(stderr, /: ids 1 to \d+, and 0, -1, which rules are about\. /);
  const justOutside = ['9223372036854775808', '-9223372036854775809'];
  const sent = store.ids.filter(id => !justOutside.includes(id)).map(id => Number(id.replace('.5', '')));
  assert.ok(sent.every(id => id >= -1 && id <= to));
});

const pem = (name: string) => readFileSync(new URL(`../../harness/postgres-tls/${name}`, import.meta.url));
const silent = createServer(() => {});
const noHttp = createNetServer(socket => socket.end('SSH-2.0-OpenSSH\r\n'));
const untrusted = createTlsServer({ key: pem('server-key.pem'), cert: pem('server.pem') });
const respond = (status: number): Server =>
  createServer((_request, response) => response.writeHead(status, { Location: 'https://other' }).end());

test('the message if nothing can be checked', async () => {
  const servers: [server: Server, message: RegExp, scheme?: string][] = [
    [silent, /: no complete response within 10 s; is the service running there/],
    [noHttp, /; the server did not respond with HTTP/],
    [untrusted, /; for a private authority, set NODE_EXTRA_CA_CERTS to the file/, 'https'],
    [respond(308), / 308 .*\(https:\/\/other\); it redirects; give the base address/],
    [respond(401), / 401 .*; give a valid token with --token-file/],
    [respond(403), /; the token may not create plants; give another token/],
    [respond(404), /; give the base address of the service, without \/plants/],
    [respond(405), /; give the base address of the service, without \/plants/],
    [respond(502), /; the service is not available now; try again later/],
  ];
  for (const [server, message, scheme = 'http'] of servers) {
    await using running = await listen(server);
    const finished = await check(running.url.replace('http', scheme));
    assertFailed(finished, message);
    assert.match(finished.stderr, /^Storing up to .*\nplant-store: .*\n$/);
  }
  const { stderr } = await check(`http://127.0.0.1:${await freePort()}`);
  assert.match(stderr, /: no complete response \(ECONNREFUSED\); is the service running there\?\n$/);
});

/** Characters that some terminal does not accept, and the token. */
const NASTY = `\u0000\u0007\u001b[2J\u009b \ufffe\ufeff\u2028\u202e \u{1f335} ${TOKEN}`;
const BODIES = [
  Buffer.from(JSON.stringify({ name: NASTY, tag: `\ud83c${NASTY}` })),
  Buffer.from(`\u00ff${NASTY}`, 'latin1'),
  Buffer.alloc(2 * 1024 * 1024, 'A'),
  Buffer.from(`{"name":${'['.repeat(400_000)}${']'.repeat(400_000)}}`),
];

test('any response is written without the token and without control characters', async () => {
  let count = 0;
  const nasty = createServer((_request, response) => {
    response.writeHead(200, `O\u0080K`, { 'Content-Type': `text/${TOKEN}` });
    response.end(BODIES[count++ % BODIES.length]);
  });
  await using server = await listen(nasty);
  for (const format of ['text', 'json']) {
    const { exitCode, stdout, stderr } = await check(server.url, ['--yes', '--format', format]);
    assert.equal(exitCode, 1);
    assert.ok(!`${stdout}${stderr}`.includes(TOKEN) && stdout.includes('text/<ACCESS_TOKEN>'), format);
    assert.doesNotMatch(stdout, /[^\P{C}\n]/u, format);
  }
});

test('Ctrl-C ends a check that waits for responses, and prints the results so far as JSON', async () => {
  let requests = 0;
  const waiting = Promise.withResolvers<void>();
  const slow = createServer((_request, response) => {
    // The first contact, three rules, and the eight in flight after them.
    if (++requests === 12) waiting.resolve();
    else if (requests <= 4) response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"id":1}');
  });
  await using server = await listen(slow);
  const env = { PLANT_STORE_TOKEN: TOKEN };
  const { child, finished } = startCommand(['check', server.url, '--yes', '--format', 'json'], { env });
  await waiting.promise;
  child.kill('SIGINT');
  const { exitCode, stdout } = await finished;
  assert.equal(exitCode, 130);
  const { baseUrl, summary, rules } = JSON.parse(stdout);
  assert.deepEqual([baseUrl, rules.length], [`${server.url}/`, RULES.length]);
  assert.deepEqual(summary, { holds: 0, doesNotHold: 3, notChecked: RULES.length - 3 });
  const { sent, received, ...rest } = rules.find(({ verdict }: RuleResult) => verdict === 'does not hold');
  const { id, level, title, source } = RULES.find(rule => rule.id === rest.id)!;
  const message = 'the response has an id, which a Plant has not; name is not as sent; tag is not as sent';
  assert.deepEqual(rest, { id, level, title, source, verdict: 'does not hold', message });
  assert.match(sent, /^POST \/plants\n(?:.+\n)+\n\{.*\}$/);
  assert.match(received, /^200 OK\n(?:.+\n)+\n\{"id":1\}$/);
  assert.deepEqual(rules.at(-1).message, 'the check was stopped');
});
