import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { errorBody, startFaulty } from '../harness/faulty-service.ts';
import { freePort } from '../harness/free-port.ts';
import { type Finished, runProgram } from '../harness/program.ts';
import { startTestService } from '../harness/running-service.ts';

/** Runs `add` with these arguments. The environment contains the address and the token. */
function add(url: string, token: string, ...args: string[]): Promise<Finished> {
  return runProgram(['add', ...args], { env: { PLANT_STORE_URL: url, PLANT_STORE_TOKEN: token } });
}

suite('add', () => {
  test('sends a plant and prints what was stored, as a sentence or as JSON', async () => {
    await using service = await startTestService();
    const { url, token } = service;
    const monstera = ['9007199254740993', 'Monstera deliciosa', '--tag', 'houseplant'];
    const { exitCode, stdout, stderr } = await add(url, token, ...monstera);
    assert.deepEqual([exitCode, stderr], [0, '']);
    const plant = '{"name":"Monstera deliciosa","tag":"houseplant"}';
    assert.equal(stdout, `created plant 9007199254740993, revision 1: ${plant}\n`);
    const again = await add(url, token, ...monstera);
    assert.match(again.stdout, /^unchanged plant 9007199254740993, revision 1:/);
    const json = await add(url, token, '--json', '9007199254740993', 'Monstera');
    assert.equal(json.stdout, '{"id":9007199254740993,"name":"Monstera","revision":2,"outcome":"revised"}\n');
  });

  test('prints the id as text with --ids text', async () => {
    await using service = await startTestService();
    const { stdout } = await add(
      service.url,
      service.token,
      '--json',
      '--ids',
      'text',
      '9007199254740993',
      '"7"',
    );
    const expected = '{"id":"9007199254740993","name":"\\\\"7\\\\"","revision":1,"outcome":"created"}\n';
    assert.equal(stdout, expected.replaceAll('\\\\', '\\'));
  });

  test('accepts a negative id and an empty tag, and prints no control characters', async () => {
    await using service = await startTestService();
    const plant = ['--tag', '', '-9223372036854775808', '\u001b[2J'];
    const { stdout } = await add(service.url, service.token, ...plant);
    assert.equal(stdout, 'created plant -9223372036854775808, revision 1: {"name":"\\u001b[2J","tag":""}\n');
  });

  test('names the wrong field, says that an id has only digits, and sends nothing', async () => {
    for (const id of ['9223372036854775808', '1.5', '1e3', 'fern', '']) {
      const { exitCode, stdout, stderr } = await add('http://127.0.0.1:1', 'token', id, 'Fern');
      assert.deepEqual([exitCode, stdout], [2, '']);
      assert.match(stderr, /^plant-store: id must be an integer from -9223372036854775808 to/);
      assert.equal(/accepts only digits, so write 1000 and not 1e3$/m.test(stderr), !/^[0-9]+$/.test(id));
    }
    assert.equal((await add('http://127.0.0.1:1', 'token', '1')).exitCode, 2);
  });

  test('rejects arguments that are not UTF-8, and sends nothing', async () => {
    const latin1 = `"$(printf 'Z\\374rich')"`;
    const plants = [`1 ${latin1}`, `--tag ${latin1} 1 Fern`];
    for (const plant of plants) {
      const shell = `"$@" add --url http://127.0.0.1:1 --token token ${plant}`;
      const { exitCode, stderr } = await runProgram([], { prefix: ['sh', '-c', shell, 'sh'] });
      assert.match(
        stderr,
        /^plant-store: .* It is not UTF-8: use a terminal with UTF-8, or import a file\.\n/,
      );
      assert.equal(exitCode, 2);
    }
  });

  test('says what to do if the token is rejected, the id is taken or no service responds', async () => {
    await using service = await startTestService({ repeatedIdRule: 'reject' });
    const { url, token } = service;
    assert.equal((await add(url, token, '1', 'Fern')).exitCode, 0);
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    for (const [toUrl, withToken, name, says] of [
      [url, token, 'Moss', /^plant-store: this id is already stored with different content/],
      [url, 'plant_unknown', 'Fern', /unknown.* create a token with: npx plant-store token create LABEL/],
      [nowhere, token, 'Fern', /no response from .* is the service running there\?$/m],
      [
        `${url}/plants`,
        token,
        'Fern',
        /send POST \/plants; --url is the base address of a plant store, without \/plants/,
      ],
    ] as const) {
      const { exitCode, stdout, stderr } = await add(toUrl, withToken, '1', name);
      assert.deepEqual([exitCode, stdout], [1, '']);
      assert.match(stderr, says);
    }
  });

  test('prints the text of a server without control characters and without the token', async () => {
    const evil = '\u001b]0;evil\u0007\u009b2J\r\nnext plant_test';
    const shown = String.raw`\u001b]0;evil\u0007\u009b2J\u000d\u000anext <ACCESS_TOKEN>`;
    const responses: [number, number][] = [
      [400, 40002],
      [401, 40102],
      [404, 40401],
      [418, 7],
    ];
    for (const [status, error] of responses) {
      await using talking = await startFaulty(post => post.respond(status, errorBody(error, evil)));
      const { stderr } = await add(talking.url, 'plant_test', '1', 'Fern');
      assert.ok(stderr.includes(shown), stderr);
      assert.doesNotMatch(stderr.trimEnd(), /\p{Cc}|plant_test/u);
    }
  });
});
