import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { connect, createServer as createNetServer } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { suite, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { makeContact } from '../../../src/cli/check/first-contact.ts';
import { RULES_FOR_EVERY_STORE } from '../../../src/cli/check/http-rules.ts';
import { idsNeeded } from '../../../src/cli/check/ids.ts';
import { INTERFACE_RULES } from '../../../src/cli/check/interface-rules.ts';
import { OWN_RULES } from '../../../src/cli/check/own-rules.ts';
import { freePort } from '../../harness/free-port.ts';
import { listen } from '../../harness/loopback-server.ts';
import { type Finished, runInTime, startProgram } from '../../harness/program.ts';
import { startTestService } from '../../harness/running-service.ts';
import { enginesUnderTest } from '../../harness/store-under-test.ts';
import { startForeignStore } from './foreign-plant-store.ts';
import { mapJson, setField, startTamperingProxy } from './tampering-proxy.ts';

const ENGINES = await enginesUnderTest();
const TOKEN = 'plant_token-of-the-tests';

/** A result as `--format json` writes it. */
interface JsonResult {
  id: string;
  level: string;
  verdict: string;
  message?: string;
  sent?: string;
  received?: string;
}

function check(url: string, args: string[] = [], token = TOKEN): Promise<Finished> {
  const consent = args.includes('--ids') ? [] : ['--yes'];
  return runInTime(['check', url, ...consent, ...args], { env: { PLANT_STORE_TOKEN: token } });
}

/** Runs `check --format json`. @returns the exit code and the ids of the rules of a verdict */
async function checkJson(
  url: string,
  args: string[] = [],
  token = TOKEN,
): Promise<Finished & { results: JsonResult[]; idsOf(verdict: string): string[] }> {
  const finished = await check(url, ['--format', 'json', ...args], token);
  assert.notEqual(finished.stdout, '', finished.stderr);
  const { rules: results } = JSON.parse(finished.stdout) as { rules: JsonResult[] };
  const idsOf = (verdict: string) => results.filter(each => each.verdict === verdict).map(({ id }) => id);
  return { ...finished, results, idsOf };
}

/** Rules that use fixed ids, which may be outside `--ids`. */
const WITH_FIXED_IDS = RULES_FOR_EVERY_STORE.filter(({ fixedIds }) => fixedIds).map(({ id }) => id);
const NEIGHBOURS = 'create.id.neighbours-above-double';

for (const engine of ENGINES) {
  test(`every rule holds for the service on ${engine.name}, with --ours, also in a second check`, async () => {
    await using service = await startTestService({ database: await engine.newDatabase() });
    const tokenFile = join(service.folder, 'token');
    await writeFile(tokenFile, `${service.token}\n`);
    for (let round = 1; round <= 2; round++) {
      const args = ['check', service.url, '--yes', '--ours', '--token-file', tokenFile];
      const { exitCode, stdout, stderr } = await runInTime(args);
      assert.deepEqual([exitCode, /\n\n/.exec(stderr)], [0, null], stdout);
      const lines = stdout.split('\n').filter(line => line.startsWith('holds '));
      assert.equal(lines.length, RULES_FOR_EVERY_STORE.length + OWN_RULES.length);
      const must = `MUST:   ${INTERFACE_RULES.length} hold, 0 do not`;
      const ours = `ours:   ${OWN_RULES.length} hold, 0 do not`;
      assert.match(stdout, new RegExp(`\n\n${must}\nSHOULD: [0-9]+ hold, 0 do not\n.*\n${ours}\n$`));
    }
  });
}

test('a rule that only this plant store promises can fail the check only with --ours', async () => {
  await using service = await startTestService();
  await using gateway = await startTamperingProxy(service.url, {
    response: setField('allow', undefined),
  });
  const without = await checkJson(gateway.url, [], service.token);
  assert.deepEqual([without.exitCode, without.idsOf('does not hold')], [0, ['method.other']]);
  const ours = await checkJson(gateway.url, ['--ours'], service.token);
  assert.deepEqual([ours.exitCode, ours.idsOf('does not hold')], [1, ['method.other', 'ours.method.allow']]);
  assert.deepEqual(ours.idsOf('not checked'), []);
});

test('a server that follows only the interface passes twice, also if it accepts each id once', async () => {
  await using store = await startForeignStore(TOKEN, { writeOnce: true });
  const first = await checkJson(store.url);
  assert.deepEqual([first.exitCode, first.idsOf('not checked')], [0, []]);
  assert.ok(first.idsOf('does not hold').includes('path.unknown'));
  const second = await checkJson(store.url);
  assert.deepEqual([second.exitCode, second.idsOf('not checked')], [0, WITH_FIXED_IDS]);
  for (const name of ['repeat.same', 'repeat.other']) assert.ok(second.idsOf('does not hold').includes(name));
});

suite('--ids', { concurrency: 2 }, () => {
  test('limits every id that is sent, and the rules that need other ids are not checked', async () => {
    await using store = await startForeignStore(TOKEN);
    const [from, to] = [9_007_199_254_741_000n, 9_007_199_254_742_000n];
    const { exitCode, idsOf } = await checkJson(store.url, ['--ids', `${from}..${to}`]);
    assert.deepEqual([exitCode, idsOf('not checked')], [0, WITH_FIXED_IDS]);
    const beyondInt64 = ['9223372036854775808', '-9223372036854775809'];
    const sent = store.ids.filter(id => !beyondInt64.includes(id));
    const integers = sent.map(id => BigInt(id.replace('.5', '')));
    assert.ok(integers.length > RULES_FOR_EVERY_STORE.length / 2);
    assert.ok(integers.some(id => Number(id) === Number(id + 1n) && integers.includes(id + 1n)));
    assert.ok(integers.every(id => id >= from && id <= to));
  });

  test('includes the fixed ids in the range, and no neighbours if every id is a double', async () => {
    await using store = await startForeignStore(TOKEN, { writeOnce: true });
    // So narrow that the fresh ids begin at -1 and skip the fixed ids.
    const to = idsNeeded(RULES_FOR_EVERY_STORE) - 2n;
    const { exitCode, idsOf, stderr } = await checkJson(store.url, ['--ids', `-1..${to}`]);
    const outside = WITH_FIXED_IDS.filter(id => !['create.id.zero', 'create.id.negative'].includes(id));
    assert.deepEqual(idsOf('not checked'), [NEIGHBOURS, ...outside]);
    assert.equal(exitCode, 0);
    for (const id of ['0', '-1']) assert.equal(store.ids.filter(each => each === id).length, 1);
    const notice = /^Storing up to (\d+) plants that nobody can delete: ids (\d+) to (\d+), and -1, 0\./;
    const [count, first, last] = notice.exec(stderr)!.slice(1).map(Number) as [number, number, number];
    assert.equal(count, last - first + 3);
    const stored = store.ids.filter(each => /^[1-9][0-9]{0,9}$/.test(each)).map(Number);
    assert.ok(stored.every(id => id >= first && id <= last));
  });

  test('is rejected if the range is too small, with the required number of ids', async () => {
    const few = await check('http://127.0.0.1:1', ['--ids', '-5..4']);
    assert.deepEqual([few.exitCode, few.stdout], [2, '']);
    const needed = /--ids -5\.\.4 contains 10 ids, but the rules need ([0-9]+);/.exec(few.stderr)?.[1];
    await using store = await startForeignStore(TOKEN);
    const enough = await check(store.url, ['--ids', `1..${needed}`]);
    assert.equal(enough.exitCode, 0, enough.stderr);
    assert.equal((await check(store.url, ['--ids', `2..${needed}`])).exitCode, 2);
  });
});

test('without --ids and --yes it says which plants it would store, and sends nothing', async () => {
  await using store = await startForeignStore(TOKEN);
  const rejected = await runInTime(['check', store.url], { env: { PLANT_STORE_TOKEN: TOKEN } });
  assert.deepEqual([rejected.exitCode, rejected.stdout, store.requests()], [2, '', 0]);
  const [, count] = /^plant-store: the check would store up to ([0-9]+) plants .*\n$/.exec(rejected.stderr)!;
  assert.match(
    rejected.stderr,
    /: ids \d+ to \d+, and -9223372036854775808, .* 9007199254740993, .*--ids .*--yes\n$/,
  );
  const { stderr } = await check(store.url);
  assert.ok(stderr.startsWith(`Storing up to ${count} plants `), stderr);
});

test('--dry-run lists the rules without a token and sends nothing', async () => {
  await using store = await startForeignStore(TOKEN);
  const { exitCode, stdout, stderr } = await runInTime(['check', store.url, '--dry-run']);
  assert.deepEqual([exitCode, stderr, store.requests()], [0, '', 0]);
  for (const { id, title } of RULES_FOR_EVERY_STORE)
    assert.ok(stdout.includes(` ${id} `) && stdout.includes(title));
});

/** A server with one listener for all requests; `await using` closes it. */
async function serve(
  listener: RequestListener,
): Promise<AsyncDisposable & { url: string; requests: () => number }> {
  let requests = 0;
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    requests++;
    listener(request, response);
  });
  return Object.assign(await listen(server), { requests: () => requests });
}

suite('the message if nothing can be checked:', { concurrency: true }, () => {
  async function says(url: string, message: RegExp, token = TOKEN): Promise<void> {
    const server = { plantsUrl: new URL(`${url}/plants`), token, stop: new AbortController().signal };
    const contact = makeContact({ ...server, id: 1n, neighbours: undefined });
    await assert.rejects(contact, { name: 'Failure', exitCode: 1, message });
  }

  test('no server responds, on one line and in each format', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const message = `${url}/plants: no complete response (ECONNREFUSED); is the service running there?`;
    const written = async (format: string): Promise<string> => {
      const { exitCode, stdout, stderr } = await check(url, ['--format', format]);
      assert.equal(exitCode, 1);
      assert.match(stderr, /^Storing up to .*\nplant-store: .*\n$/);
      assert.ok(stderr.endsWith(`plant-store: ${message}\n`));
      return stdout;
    };
    assert.equal(await written('text'), '');
    const { failure, rules, summary } = JSON.parse(await written('json'));
    assert.deepEqual([failure, rules, summary], [message, [], {}]);
    const junit = await written('junit');
    assertWellFormed(junit);
    assert.match(junit, /<testsuite [^>]*tests="1" failures="0" errors="1"/);
    assert.ok(junit.includes(`<error message="${message}"/>`));
  });

  test('the server does not respond with HTTP', async () => {
    const server = createNetServer(socket => socket.on('error', () => {}).end('SSH-2.0-OpenSSH\r\n'));
    await using running = await listen(server);
    const message =
      /: no complete response \(HPE_\w+\); the server did not respond with HTTP; check the address$/;
    await says(running.url, message);
  });

  test('the token is rejected, or a proxy strips the Authorization header', async () => {
    await using service = await startTestService();
    const rejected =
      /responds with 401 to a valid plant: the token is rejected \(.*40102.*\); give a valid token/;
    await says(service.url, rejected);
    await using gateway = await startTamperingProxy(service.url, {
      request: setField('authorization', undefined),
    });
    const stripped = /responds with 401 .*: the response without a token is the same, so a proxy may remove/;
    await says(gateway.url, stripped, service.token);
  });

  test('Node does not trust the certificate, unless NODE_EXTRA_CA_CERTS names its authority', async () => {
    await using store = await startForeignStore(TOKEN);
    const pem = (name: string): string =>
      fileURLToPath(new URL(`../../harness/postgres-tls/${name}`, import.meta.url));
    const identity = { key: readFileSync(pem('server-key.pem')), cert: readFileSync(pem('server.pem')) };
    const server = createTlsServer(identity, socket => {
      const behind = connect(Number(new URL(store.url).port), '127.0.0.1');
      // Either side may close its connection first.
      pipeline(socket, behind, socket).catch(() => {});
    });
    await using running = await listen(server);
    const url = `https://localhost:${running.port}`;
    const message = /\([A-Z_]+\); set NODE_EXTRA_CA_CERTS to the file with the certificate of its authority$/;
    await says(url, message);
    const env = { PLANT_STORE_TOKEN: TOKEN, NODE_EXTRA_CA_CERTS: pem('ca.pem') };
    const { exitCode, stderr } = await runInTime(['check', url, '--yes'], { env });
    assert.equal(exitCode, 0, stderr);
  });

  const respond = (status: number, headers = {}): RequestListener => {
    return (_request, response) => response.writeHead(status, headers).end();
  };
  const elsewhere = { Location: 'https://plants.example/plants' };
  const tooLong: RequestListener = (_request, response) => response.end(Buffer.alloc(2 * 1024 * 1024));
  const responses: [what: string, RequestListener, message: RegExp][] = [
    ['no response in time', () => {}, /: no complete response within 10 s; is the service running there\?$/],
    ['a long response', tooLong, /no complete response \(the response exceeds 1048576 bytes\)/],
    [
      '308',
      respond(308, elsewhere),
      /\(https:\/\/plants\.example\/plants\); give the base address of the target$/,
    ],
    ['404', respond(404), /give the base address of the service, without \/plants$/],
    ['405', respond(405), /give the base address of the service, without \/plants$/],
    ['403', respond(403), /the token may not create plants; give another/],
    ['502', respond(502), /the service is not available now; try again later$/],
  ];
  for (const [what, listener, message] of responses) {
    test(what, async () => {
      await using server = await serve(listener);
      await says(server.url, message);
      assert.equal(server.requests(), 1);
    });
  }
});

test('a request that gets 429 is sent again, and its rule does not fail', async () => {
  await using store = await startForeignStore(TOKEN);
  await using busy = await startForeignStore(TOKEN, { putOffEvery: 10 });
  const [usual, putOff] = await Promise.all([checkJson(store.url), checkJson(busy.url)]);
  assert.deepEqual([putOff.exitCode, putOff.idsOf('does not hold')], [0, usual.idsOf('does not hold')]);
  assert.ok(busy.requests() > store.requests());
});

/** Characters that some format, terminal or XML parser does not accept, and the token. */
const NASTY = `\u0000\u0007\u001b[2J\u009b]]><!-- & &amp; "' # \\ \ufffe\uffff\ufeff\u2028\u202e \u{1f335} ${TOKEN}`;

suite('any response of a server', { concurrency: 2 }, () => {
  async function nastyServer(): Promise<Awaited<ReturnType<typeof serve>>> {
    let count = 0;
    return serve((request, response) => {
      const name = count++ === 0 ? 'A' : NASTY;
      // Every second body ends with bytes that are neither JSON nor UTF-8.
      const end = count % 2 === 0 ? Buffer.from('\u00ff\ud83c', 'latin1') : Buffer.alloc(0);
      response.setHeader('X-Authorization', request.headers.authorization ?? 'none');
      response.writeHead(200, `O\u0080K`, { 'Content-Type': 'application/json' });
      response.end(Buffer.concat([Buffer.from(JSON.stringify({ name, tag: `\ud83c${NASTY}` })), end]));
    });
  }

  test('is written in every format, without the token', async () => {
    for (const [format, read] of Object.entries(READERS)) {
      await using server = await nastyServer();
      const { exitCode, stdout, stderr } = await check(server.url, ['--format', format]);
      assert.equal(exitCode, 1);
      assert.ok(!`${stdout}${stderr}`.includes(TOKEN), format);
      assert.ok(stdout.includes('ACCESS_TOKEN'), format);
      assert.doesNotMatch(stdout, /[^\P{C}\n]/u, format);
      read(stdout);
    }
  });

  test('is a finding also with deep nesting or a very long name', async () => {
    const nested = '['.repeat(400_000) + ']'.repeat(400_000);
    for (const body of [`{"name":${nested}}`, `{"name":"${'A'.repeat(1_000_000)}"}`]) {
      await using server = await serve((_request, response) =>
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(body),
      );
      const { exitCode, results } = await checkJson(server.url);
      assert.equal(exitCode, 1);
      assert.match(results.find(({ id }) => id === 'create.name.as-sent')!.message!, /^expected .{1,491}$/);
    }
  });
});

const READERS: Record<string, (text: string) => void> = {
  text: () => {},
  json: text => JSON.parse(text),
  junit: assertWellFormed,
};

/** XML 1.0 (https://www.w3.org/TR/xml/), sections 2.2, 2.4 and 3.1, without a DTD. */
function assertWellFormed(document: string): void {
  assert.doesNotMatch(document, /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]|\]\]>/u);
  assert.doesNotMatch(document, /&(?!(?:lt|gt|amp|quot);)/);
  const declaration = '<?xml version="1.0" encoding="UTF-8"?>\n';
  assert.ok(document.startsWith(declaration));
  const open: string[] = [];
  const tag = /<(\/?)([a-z-]+)(?: [a-z]+="[^"<]*")*(\/?)>/g;
  const text = document.slice(declaration.length).replace(tag, (_tag, end, name, empty) => {
    if (end) assert.equal(open.pop(), name);
    else if (!empty) open.push(name);
    return '';
  });
  assert.deepEqual([open, text.includes('<')], [[], false]);
}

suite('a format', { concurrency: 2 }, () => {
  /** The service behind a proxy that breaks a MUST and a SHOULD; --ids excludes rules. */
  async function written(format: string): Promise<string> {
    await using service = await startTestService();
    await using gateway = await startTamperingProxy(service.url, {
      response: (message, status) => {
        const alter =
          status === 200 ? mapJson(plant => ({ id: 1, ...plant })) : setField('www-authenticate', undefined);
        return alter(message, status);
      },
    });
    const args = ['--format', format, '--ids', '1000..2000'];
    const { stdout, exitCode } = await check(gateway.url, args, service.token);
    assert.equal(exitCode, 1);
    return stdout;
  }
  const message = 'expected id absent; found id 1';
  /** The given range contains no fixed id and no two ids with the same double value. */
  const notChecked = [NEIGHBOURS, ...WITH_FIXED_IDS];

  test('json has the members that are documented', async () => {
    const { rules, ...rest } = JSON.parse(await written('json'));
    assert.deepEqual(Object.keys(rest), ['baseUrl', 'startedAt', 'elapsedMs', 'summary']);
    const mustHold = INTERFACE_RULES.length - 1 - notChecked.length;
    assert.deepEqual(rest.summary.MUST, { holds: mustHold, doesNotHold: 1, notChecked: notChecked.length });
    assert.deepEqual(Object.keys(rest.summary), ['MUST', 'SHOULD', 'MAY']);
    const { sent, received, elapsedMs, ...finding } = rules.find(
      ({ id }: JsonResult) => id === 'create.no-id',
    );
    assert.deepEqual(finding, {
      ...{ id: 'create.no-id', level: 'MUST', title: 'the Plant in the response has no id' },
      ...{ source: 'interface, Plant', verdict: 'does not hold', message },
    });
    assert.match(received, /^200 OK\n(?:.*\n)+\n\{"id":1,"name":"A"\}$/);
    assert.equal(typeof elapsedMs, 'number');
    assert.ok(sent.endsWith('"name":"A"}'));
  });

  test('junit shows a MUST as a failure and any other finding as skipped', async () => {
    const junit = await written('junit');
    const cases = junit.split('<testcase ').slice(1);
    assert.equal(cases.length, RULES_FOR_EVERY_STORE.length);
    // The rules that were not checked, and the SHOULD that does not hold.
    const counts = `tests="${cases.length}" failures="1" errors="0" skipped="${notChecked.length + 1}"`;
    assert.ok(junit.includes(`<testsuites name="plant-store check" ${counts} `), junit.slice(0, 300));
    const failed = cases.filter(each => each.includes('<failure '));
    assert.equal(failed.length, 1);
    assert.match(failed[0]!, / name="create\.no-id: the Plant in the response has no id"/);
    const sent = /<failure message="expected id absent; found id 1">[^<]*\nsent:\nPOST \/plants\n/;
    assert.match(failed[0]!, sent);
    const received =
      /\nreceived:\n200 OK\n[^<]*\{&quot;id&quot;:1,&quot;name&quot;:&quot;A&quot;\}<\/failure>/;
    assert.match(failed[0]!, received);
    const challenge = cases.find(each => each.includes(' name="credential.challenge: '))!;
    assert.match(challenge, /<skipped message="SHOULD: expected WWW-Authenticate: .*\n<system-out>/);
  });
});

test('Ctrl-C ends a check that waits for responses, and prints the results so far', async () => {
  let responded = 0;
  const waiting = Promise.withResolvers<void>();
  await using server = await serve((_request, response) => {
    if (++responded > 4) waiting.resolve();
    else response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"name":"A","tag":"B"}');
  });
  const child = startProgram(['check', server.url, '--yes', '--format', 'json'], {
    env: { PLANT_STORE_TOKEN: TOKEN },
  });
  let stdout = '';
  child.stdout!.setEncoding('utf8').on('data', text => (stdout += text));
  await waiting.promise;
  child.kill('SIGINT');
  const [exitCode] = await once(child, 'close');
  assert.equal(exitCode, 130);
  const { rules, elapsedMs } = JSON.parse(stdout) as { rules: JsonResult[]; elapsedMs: number };
  assert.ok(elapsedMs < 10_000, 'the check waited for responses');
  assert.equal(rules.length, RULES_FOR_EVERY_STORE.length);
  const stopped = rules.filter(({ message }) => message === 'the check was stopped');
  assert.ok(stopped.length >= rules.length - 3 && stopped.every(({ verdict }) => verdict === 'not checked'));
});
