import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { PlantStore } from '../../../src/client/plant-store.ts';
import { commandProcess } from '../../harness/command-lines.ts';
import { startFaulty } from '../../harness/faulty-service.ts';
import { countsIn, linesOf, pasteUndo, siteOf } from '../../harness/import-site.ts';
import { type LoopbackServer, listen } from '../../harness/loopback-server.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';

const commands = commandProcess();

/** Passes requests on to a service. @param change changes the headers; `false` loses the response */
async function startProxy(
  service: RunningService,
  change: (headers: IncomingHttpHeaders, number: number) => boolean,
): Promise<LoopbackServer> {
  let count = 0;
  return await listen(
    createServer((incoming, response) => {
      const { headers, method, url } = incoming;
      const isAnswered = change(headers, ++count);
      const passed = request(`${service.url}${url}`, { method, headers }, answer => {
        if (!isAnswered) {
          incoming.socket.destroy();
          answer.resume();
          return;
        }
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      });
      incoming.pipe(passed);
    }),
  );
}

const GATEWAYS: [what: string, dropsFrom: number, replacedMax: number, says: RegExp][] = [
  [
    'from the first request replaces nothing',
    1,
    0,
    /^plant-store: the service accepts a request with an invalid If-Plant-Revision, .* update the service, /,
  ],
  [
    'after the test of the header replaces the plants in flight at most',
    2,
    16,
    /^plant-store: plant 0 was replaced by revision 2, although import sends If-Plant-Revision: 0, .* update the service, /,
  ],
];
for (const [what, dropsFrom, replacedMax, says] of GATEWAYS)
  test(`a gateway that drops the header ${what}, and ends the import`, async () => {
    await using service = await startTestService();
    await using proxy = await startProxy(service, (headers, number) => {
      if (number >= dropsFrom) delete headers['if-plant-revision'];
      return true;
    });
    const direct = await siteOf(commands, service);
    const site = await siteOf(commands, service, undefined, proxy.url);
    const rows = (word: string): string =>
      Array.from({ length: 500 }, (_, index) => `${index},${word} ${index}\n`).join('');
    await direct.write({ 'stored.csv': `id,name\n${rows('stored')}` });
    assert.equal((await direct.run('import', 'stored.csv')).exitCode, 0);
    const before = await direct.exported();
    // Without --replace, the time can be a second too early.
    await wait(1_100);

    await site.write({ 'list.csv': `id,name\n${rows('other')}` });
    const ended = await site.run('import', '--in-flight', '16', 'list.csv');
    assert.match(ended.stderr, says);
    assert.equal(ended.exitCode, 1);
    if (replacedMax === 0) assert.equal(ended.stdout, '');
    else {
      const [, replaced] = /, ([0-9]+) replaced, /.exec(ended.stdout)!;
      assert.ok(Number(replaced) >= 1 && Number(replaced) <= replacedMax, ended.stdout);
      await pasteUndo(ended, direct);
    }
    assert.equal(await direct.exported(), before);
  });

test('rows whose responses are lost are sent again, and count as stored', async () => {
  await using service = await startTestService();
  await using proxy = await startProxy(service, (_, number) => number % 7 !== 3);
  const site = await siteOf(commands, service, undefined, proxy.url);
  const rows = Array.from({ length: 100 }, (_, index) => `${index},name ${index},\n`);
  await site.write({ 'list.csv': `id,name,tag\n${rows.join('')}` });
  const { exitCode, stdout } = await site.run('import', 'list.csv');
  assert.match(stdout, /^100 rows: \d+ created, [1-9]\d* unchanged, 0 replaced, 0 rejected/);
  assert.equal(exitCode, 0);
  assert.equal(await site.exported(), `id,name,tag\n${rows.join('')}`);
});

test('what --replace replaced can be undone, also if all responses of replaced plants were lost', async () => {
  await using service = await startTestService();
  // The test and each row are sent twice: the response with the odd number is lost.
  await using proxy = await startProxy(service, (_, number) => number % 2 === 0);
  const direct = await siteOf(commands, service);
  const site = await siteOf(commands, service, undefined, proxy.url);
  await direct.write({ 'stored.csv': 'id,name\n1,a\n2,b\n' });
  assert.equal((await direct.run('import', 'stored.csv')).exitCode, 0);
  const before = await direct.exported();
  await site.write({ 'list.csv': 'id,name\n1,A\n2,B\n' });
  const imported = await site.run('import', '--replace', '--in-flight', '1', 'list.csv');
  assert.equal(countsIn(imported), '0 created, 2 unchanged, 0 replaced, 0 rejected');
  assert.match(imported.stdout, /^to undo what rows of a failed request may have replaced, run: /m);
  assert.notEqual(await direct.exported(), before);
  assert.equal(
    countsIn(await pasteUndo(imported, direct)).slice(0, 38),
    '0 created, 0 unchanged, 2 replaced, 0 ',
  );
  assert.equal(await direct.exported(), before);
});

test('a second import of the same list has nothing to undo', async () => {
  await using service = await startTestService();
  const site = await siteOf(commands, service);
  await site.write({ 'list.csv': 'id,name\n1,a\n' });
  for (const count of ['1 created', '1 unchanged']) {
    const { stdout } = await site.run('import', '--replace', 'list.csv');
    assert.match(stdout, new RegExp(`${count}, .*\n$`));
    assert.doesNotMatch(stdout, /undo/);
  }
});

test('the undo has its own file, the options that were given, and a count of rows', async () => {
  await using service = await startTestService();
  const site = await siteOf(commands, service);
  await site.write({
    'stored.csv': 'id,name\n1,a\n',
    'earlier.csv': 'id,name\n1,b\n1,c\n',
    token: service.token,
  });
  assert.equal((await site.run('import', 'stored.csv')).exitCode, 0);
  const given = ['--url', service.url, '--token-file', 'token'];
  const { stdout } = await site.run('import', '--replace', ...given, 'earlier.csv');
  const lines = linesOf(stdout).slice(1);
  assert.equal(lines.length, 2, stdout);
  assert.match(
    lines[0]!,
    /^to undo what 2 rows replaced, run: npx plant-store export --database \S+ --at \S+ --changed > earlier-\d\S+Z\.csv$/,
  );
  const [file] = /\S+$/.exec(lines[0]!)!;
  assert.ok(lines[1]!.endsWith(`: npx plant-store import --replace ${given.join(' ')} ${file}`), stdout);
  const again = await site.run('import', '--replace', ...given, 'earlier.csv');
  assert.ok(again.stdout.includes(' > earlier-') && !again.stdout.includes(file), again.stdout);
});

test('the undo sets back what was stored just before, also in several imports of one second', async () => {
  await using service = await startTestService();
  const site = await siteOf(commands, service);
  await site.write({ 'new.csv': 'id,name\n1,a\n', 'list.csv': 'id,name\n1,c\n' });
  assert.equal((await site.run('import', 'new.csv')).exitCode, 0);
  const store = new PlantStore({ url: service.url, token: service.token });
  await store.createPlant({ id: 1, name: 'b' });
  store.close();
  await pasteUndo(await site.run('import', '--replace', 'list.csv'), site);
  assert.equal(await site.exported(), 'id,name,tag\n1,b,\n');
});

suite('the time of the command that undoes --replace', { concurrency: 4 }, () => {
  /** @param date of all responses */
  const replaceAt = async (date: string): Promise<{ tests: number; waitMs: number; undo: string }> => {
    let tests = 0;
    let testedMs = Number.NaN;
    let waitMs = Number.NaN;
    await using server = await startFaulty(
      ({ respond }) => {
        waitMs = performance.now() - testedMs;
        const stored = { 'Plant-Outcome': 'revised', 'Plant-Revision': '2', 'Plant-Id': '1' };
        respond(200, '{"name":"a"}', { ...stored, Date: date });
      },
      0,
      () => {
        tests++;
        testedMs = performance.now();
        return { Date: date };
      },
    );
    const args = ['import', '--replace', '--url', server.url, '--token', 'plant_test', '-'];
    const finished = await commands.run({ args, stdin: 'id,name\n1,a\n' });
    return { tests, waitMs, undo: linesOf(finished.stdout)[1]! };
  };

  test('is the end of the second of the only test, and the row is sent after this second', async () => {
    const { tests, waitMs, undo } = await replaceAt('Mon, 30 Nov 2026 05:00:00 GMT');
    assert.equal(tests, 1);
    // The test can have been at the start of its second.
    assert.ok(waitMs >= 1_000, `${waitMs} ms`);
    assert.match(undo, / --at 2026-11-30T05:00:00\.999Z --changed /);
  });

  test('is for a person to choose if the response has no valid Date', async () => {
    const { tests, undo } = await replaceAt('x');
    assert.equal(tests, 1);
    assert.match(undo, /docs\/operate\/corrections\.md/);
  });
});
