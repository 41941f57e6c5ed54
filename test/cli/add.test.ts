import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandProcess } from '../harness/command-lines.ts';
import { errorBody, startFaulty } from '../harness/faulty-service.ts';
import { freePort } from '../harness/free-port.ts';
import { assertFailed, type Finished, runProgram } from '../harness/program.ts';
import { startTestService } from '../harness/running-service.ts';

const commands = commandProcess();

/** Runs `add` with these arguments. The environment contains the address and the token. */
function add(url: string, token: string, ...args: string[]): Promise<Finished> {
  return commands.run({
    args: ['add', ...args],
    env: { PLANT_STORE_URL: url, PLANT_STORE_TOKEN: token },
  });
}

test('add sends a plant and prints what was stored, as a sentence or as JSON', async () => {
  await using service = await startTestService();
  const id = '9007199254740993';
  const cases: [args: string[], printed: string][] = [
    [[id, 'Fern', '--tag', 'a'], `created plant ${id}, revision 1: {"name":"Fern","tag":"a"}`],
    [[id, 'Fern', '--tag', 'a'], `unchanged plant ${id}, revision 1: {"name":"Fern","tag":"a"}`],
    [['--json', id, 'Moss'], `{"id":${id},"name":"Moss","revision":2,"outcome":"revised"}`],
    [
      ['--tag', '', '-9223372036854775808', '\u001b[2J'],
      String.raw`created plant -9223372036854775808, revision 1: {"name":"\u001b[2J","tag":""}`,
    ],
  ];
  for (const [args, printed] of cases) {
    const finished = await add(service.url, service.token, ...args);
    assert.deepEqual(finished, { exitCode: 0, stdout: `${printed}\n`, stderr: '' });
  }
});

test('add --if-revision stores a plant only as the next revision of this one', async () => {
  await using service = await startTestService();
  const { url, token } = service;
  const stored = (text: string) => ({ exitCode: 0, stdout: `${text}\n`, stderr: '' });
  for (const [name, revision, printed] of [
    ['Fern', '0', 'created plant 7, revision 1: {"name":"Fern"}'],
    ['Fern', '0', 'unchanged plant 7, revision 1: {"name":"Fern"}'],
    ['Moss', '1', 'revised plant 7, revision 2: {"name":"Moss"}'],
    ['Fern', '1', /plant 7 has revision 2, not 1; nothing was stored; to .* --if-revision 2$/m],
    ['Fern', '0', /plant 7 has revision 2, not 0; nothing was stored; to .* --if-revision 2$/m],
  ] as const) {
    const finished = await add(url, token, '7', name, '--if-revision', revision);
    if (typeof printed === 'string') assert.deepEqual(finished, stored(printed));
    else assertFailed(finished, printed);
  }
  const missing = await add(url, token, '8', 'Fern', '--if-revision', '2147483647');
  assertFailed(missing, /there is no plant 8, .*; nothing was stored; to .* --if-revision 0$/m);
  for (const invalid of ['-1', '01', '1.0', '', '2147483648'])
    assertFailed(await add(url, token, '9', 'Fern', `--if-revision=${invalid}`), /from 0 to 2147483647/, 2);
});

test('add names the wrong field, and sends nothing', async () => {
  const withNul = await add('http://127.0.0.1:1', 'token', '1', 'Fern', '--tag', 'a\ud800');
  assertFailed(withNul, /^plant-store: tag/, 2);
  assert.equal((await add('http://127.0.0.1:1', 'token', '1')).exitCode, 2);
  // Only a shell can pass arguments that are not UTF-8.
  const latin1 = `"$(printf 'Z\\374rich')"`;
  for (const plant of [`1 ${latin1}`, `--tag ${latin1} 1 Fern`]) {
    const shell = `"$@" add --url http://127.0.0.1:1 --token token ${plant}`;
    const finished = await runProgram([], { prefix: ['sh', '-c', shell, 'sh'] });
    assertFailed(finished, /^plant-store: .* It is not UTF-8: use a terminal with UTF-8, or import a f/, 2);
  }
});

test('add says what to do if the token is rejected, the id is taken or no service responds', async () => {
  await using service = await startTestService({ repeatedIdRule: 'reject' });
  const { url, token } = service;
  assert.equal((await add(url, token, '1', 'Fern')).exitCode, 0);
  const nowhere = `http://127.0.0.1:${await freePort()}`;
  for (const [toUrl, withToken, says] of [
    [url, token, /^plant-store: this id is already stored with different content/],
    [
      url,
      'plant_unknown',
      /^plant-store: the service rejects the token of PLANT_STORE_TOKEN: .* unknown, mistyped.* copy it again .*; or create a token with: npx plant-store token create LABEL$/m,
    ],
    [nowhere, token, /^plant-store: no response from .* is the service running there\?$/m],
    // `fetch` blocks this port.
    [
      'http://127.0.0.1:9',
      token,
      /^plant-store: no response from .* \(ECONNREFUSED\); is the service .*\?$/m,
    ],
    [`${url}/plants`, token, /send POST \/plants; check the option url, .* without \/plants: http:/],
  ] as const)
    assertFailed(await add(toUrl, withToken, '1', 'Moss'), says);
});

test('add prints the text of a server without control characters and without the token', async () => {
  const evil = '\u001b]0;evil\u0007\u009b2J\r\nnext plant_test';
  const shown = String.raw`\u001b]0;evil\u0007\u009b2J\u000d\u000anext <ACCESS_TOKEN>`;
  for (const [status, error] of [
    [400, 40002],
    [401, 40102],
    [404, 40401],
    [418, 7],
  ] as const) {
    await using talking = await startFaulty(post => post.respond(status, errorBody(error, evil)));
    const { stderr } = await add(talking.url, 'plant_test', '1', 'Fern');
    assert.ok(stderr.includes(shown), stderr);
    assert.doesNotMatch(stderr.trimEnd(), /\p{Cc}|plant_test/u);
  }
});
