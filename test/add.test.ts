import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { errorBody, startFaulty } from './faulty-service.ts';
import { freePort } from './harness/free-port.ts';
import { runProgram } from './harness/program.ts';
import { startTestService } from './running-service.ts';

suite('add', () => {
  test('sends a plant and prints what was stored, as a sentence or as JSON', async () => {
    await using service = await startTestService();
    const env = { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token };
    const monstera = ['add', '9007199254740993', 'Monstera deliciosa', '--tag', 'houseplant'];
    const first = await runProgram(monstera, { env });
    assert.deepEqual(first, {
      exitCode: 0,
      stdout:
        'created plant 9007199254740993, revision 1: {"name":"Monstera deliciosa","tag":"houseplant"}\n',
      stderr: '',
    });
    assert.match(
      (await runProgram(monstera, { env })).stdout,
      /^unchanged plant 9007199254740993, revision 1:/,
    );
    const { stdout } = await runProgram(['add', '--json', '9007199254740993', 'Monstera'], { env });
    assert.equal(stdout, '{"id":9007199254740993,"name":"Monstera","revision":2,"outcome":"revised"}\n');
  });

  test('takes a negative id behind --, an empty tag, and shows nothing that a terminal obeys', async () => {
    await using service = await startTestService();
    const env = { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token };
    const args = ['add', '--tag', '', '--', '-9223372036854775808', '\u001b[2J'];
    const { stdout } = await runProgram(args, { env });
    assert.equal(stdout, 'created plant -9223372036854775808, revision 1: {"name":"\\u001b[2J","tag":""}\n');
  });

  test('says which field is wrong, and sends nothing', async () => {
    const env = { PLANT_STORE_URL: 'http://127.0.0.1:1', PLANT_STORE_TOKEN: 'token' };
    for (const id of ['9223372036854775808', '1.5', 'fern', '']) {
      const { exitCode, stdout, stderr } = await runProgram(['add', id, 'Fern'], { env });
      assert.deepEqual([exitCode, stdout], [2, '']);
      assert.match(stderr, /^plant-store: id must be an integer from -9223372036854775808 to/);
    }
    assert.equal((await runProgram(['add', '1'], { env })).exitCode, 2);
  });

  test('says what to do when the token is refused, the id is taken or nobody answers', async () => {
    await using service = await startTestService({ repeatedIdRule: 'reject' });
    const { url, token } = service;
    const send = (name: string, env: Record<string, string>) =>
      runProgram(['add', '1', name], { env: { PLANT_STORE_URL: url, PLANT_STORE_TOKEN: token, ...env } });
    assert.equal((await send('Fern', {})).exitCode, 0);
    const taken = await send('Moss', {});
    assert.match(taken.stderr, /^plant-store: a plant with this id and other content is stored already/);
    const refused = await send('Fern', { PLANT_STORE_TOKEN: 'plant_unknown' });
    assert.match(refused.stderr, /refused|unknown.* make one with: npx plant-store token create LABEL/);
    const away = await send('Fern', { PLANT_STORE_URL: `http://127.0.0.1:${await freePort()}` });
    assert.match(away.stderr, /no answer from .* is the service running there\?$/m);
    const lost = await send('Fern', { PLANT_STORE_URL: `${url}/plants` });
    assert.match(
      lost.stderr,
      /plants are created with POST \/plants; --url is the base address of a plant store, without \/plants/,
    );
    for (const { exitCode, stdout } of [taken, refused, away, lost])
      assert.deepEqual([exitCode, stdout], [1, '']);
  });

  test('shows nothing that a terminal obeys, and no token, of what a server says', async () => {
    const evil = '\u001b]0;evil\u0007\u009b2J\r\nnext plant_test';
    const shown = String.raw`\u001b]0;evil\u0007\u009b2J\u000d\u000anext <ACCESS_TOKEN>`;
    const answers: [number, number][] = [
      [400, 40002],
      [401, 40102],
      [404, 40401],
      [418, 7],
    ];
    for (const [status, error] of answers) {
      await using talking = await startFaulty(post => post.answer(status, errorBody(error, evil)));
      const env = { PLANT_STORE_URL: talking.url, PLANT_STORE_TOKEN: 'plant_test' };
      const { stderr } = await runProgram(['add', '1', 'Fern'], { env });
      assert.ok(stderr.includes(shown), stderr);
      assert.doesNotMatch(stderr.trimEnd(), /\p{Cc}|plant_test/u);
    }
  });
});
