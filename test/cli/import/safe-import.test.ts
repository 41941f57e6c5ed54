import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { commandProcess } from '../../harness/command-lines.ts';
import { startFaulty } from '../../harness/faulty-service.ts';
import { type LoopbackServer, listen } from '../../harness/loopback-server.ts';
import { paste } from '../../harness/pasted-commands.ts';
import { assertFailed, type Finished } from '../../harness/program.ts';
import { addToken, type RunningService, startTestService } from '../../harness/running-service.ts';
import { enginesUnderTest } from '../../harness/store-under-test.ts';
import { changeRows } from '../../harness/stored-revisions.ts';
import { testFolder } from '../../harness/test-folder.ts';

const engines = await enginesUnderTest();
const commands = commandProcess();

const SHARED = new URL('../../../../shared/data/', import.meta.url);
const TREES = readFileSync(new URL('../../../examples/us-trees.csv', import.meta.url), 'utf8');

/** A service whose store can be read, and how commands reach both. */
interface Site {
  service: RunningService;
  env: Record<string, string>;
  run(...args: string[]): Promise<Finished>;
  write(files: Record<string, string>): Promise<void>;
  read(name: string): Promise<string>;
  exported(): Promise<string>;
}

async function siteOf(service: RunningService, token: string, url = service.url): Promise<Site> {
  const cwd = testFolder();
  const env = {
    PLANT_STORE_URL: url,
    PLANT_STORE_TOKEN: token,
    PLANT_STORE_DATABASE: service.database,
  };
  const run = (...args: string[]): Promise<Finished> => commands.run({ args, env, cwd });
  return {
    service,
    env: { ...env, FOLDER: cwd },
    run,
    write: async files => {
      for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text);
    },
    read: name => readFile(join(cwd, name), 'utf8'),
    exported: async () => (await run('export')).stdout,
  };
}

function linesOf(text: string): string[] {
  return text.trimEnd().split('\n');
}

/** The counts that an import prints, or a dry run expects: `1 created, 0 unchanged, …`. */
function countsIn({ stdout }: Finished): string {
  return /[0-9,]+ created, [0-9,]+ unchanged, [0-9,]+ replaced, [0-9,]+ rejected/.exec(stdout)?.[0] ?? stdout;
}

/** The command that a line of the output has. */
function commandIn({ stdout }: Finished, start: string): string {
  const line = linesOf(stdout).find(each => each.includes(start));
  assert.ok(line !== undefined, stdout);
  return line.slice(line.indexOf('npx '));
}

suite('a list in the wrong store', () => {
  if (!existsSync(SHARED)) {
    test.skip('needs the data beside the repository');
    return;
  }
  // The first part of the list has all ids that the trees have, too.
  const list = linesOf(gunzipSync(readFileSync(new URL('flora-brasil.csv.gz', SHARED))).toString()).filter(
    (line, index) => index === 0 || Number(line.split(',')[0]) <= 9_000,
  );
  const treeIds = new Set(linesOf(TREES).map(line => line.split(',')[0]!));
  const common = list.slice(1).filter(line => treeIds.has(line.split(',')[0]!)).length;
  const counts = (created: number, unchanged: number, replaced: number, rejected: number): string =>
    Object.entries({ created, unchanged, replaced, rejected })
      .map(([name, count]) => `${count.toLocaleString('en-GB')} ${name}`)
      .join(', ');

  for (const under of engines)
    test(`on ${under.name} replaces nothing; what --replace replaces is set back by the printed command`, async () => {
      const database = await under.newDatabase();
      const token = await addToken(database, 'test');
      await using service = await startTestService({ database });
      const site = await siteOf(service, token);
      await site.write({ 'trees.csv': TREES, 'list.csv': `${list.join('\n')}\n` });
      assert.equal((await site.run('import', 'trees.csv')).exitCode, 0);
      const created = list.length - 1 - common;
      assert.ok(common > 2_000 && created > 1_000);

      const dryRun = await site.run('import', '--dry-run', '--show-replaced', 'all.csv', 'list.csv');
      assert.equal(countsIn(dryRun), counts(created, 0, 0, common));
      assert.match(
        dryRun.stdout,
        /^other content: list\.csv line \d+ \(row \d+\): 41: "Port-Orford-cedar" \(tag "Chamaecyparis"\) → "Alstroemeriaceae Dumort." /m,
      );
      assert.equal(dryRun.stdout.match(/^other content: /gm)?.length, 10);
      const all = linesOf(await site.read('all.csv'));
      assert.equal(all.length, 1 + common);
      assert.ok(all.some(line => line.startsWith('316,1,red maple,Acer,')));
      assert.equal(dryRun.exitCode, 1);
      assert.equal(await site.exported(), TREES, 'a dry run changes nothing');

      const safe = await site.run('import', 'list.csv');
      assert.equal(countsIn(safe), countsIn(dryRun));
      const afterSafe = await site.exported();
      assert.equal(linesOf(afterSafe).length, linesOf(TREES).length + created);
      assert.deepEqual(
        linesOf(afterSafe).filter(line => treeIds.has(line.split(',')[0]!)),
        linesOf(TREES),
      );
      assert.match(
        await site.read('list.rejects.csv'),
        /^316,.*,41201,"plant 316 is stored with other content, revision 1"$/m,
      );
      assert.equal(safe.exitCode, 1);

      const predicted = await site.run('import', '--dry-run', '--replace', 'list.rejects.csv');
      assert.equal(countsIn(predicted), counts(0, 0, common, 0));
      assert.equal(predicted.exitCode, 0);
      const { FOLDER: folder, ...env } = site.env as Record<string, string> & { FOLDER: string };
      const replaced = await paste(commandIn(safe, 'import --replace'), folder, env);
      assert.equal(countsIn({ ...replaced, exitCode: 0 }), countsIn(predicted));
      assert.notEqual(await site.exported(), afterSafe);

      const undone = await paste(commandIn({ ...replaced, exitCode: 0 }, 'export --at'), folder, env);
      assert.equal(countsIn({ ...undone, exitCode: 0 }), counts(0, 0, common, 0));
      assert.equal(await site.exported(), afterSafe);
    });
});

for (const under of engines)
  test(`a dry run on ${under.name} predicts the counts of the import, also with repeated ids`, async () => {
    const database = await under.newDatabase();
    const token = await addToken(database, 'test');
    await using service = await startTestService({ database });
    const site = await siteOf(service, token);
    await site.write({
      'stored.csv': 'id,name,tag\n1,one,\n2,two,\n3,three,""\n-9223372036854775808,least,t\n9,nine,\n',
      // Same, other name, only another tag, then back; new, same and other in the same list; invalid.
      'list.csv':
        'id,name,tag\n1,one,\n2,TWO,\n2,two,\n3,three,\n-9223372036854775808,least,t\n' +
        '4,four,\n4,four,\n4,FOUR,\n4,four,\nx,no,\n9,nine,x\n9,nine,x\n',
      'more.jsonl': `{"id":4,"name":"4"}\n{"id":5,"name":"${'x'.repeat(1024 * 1024)}"}\n{"id":6,"name":"six"}\n`,
    });
    assert.equal((await site.run('import', 'stored.csv')).exitCode, 0);
    await changeRows(under, database, `UPDATE plant_revision SET name = 'damaged' WHERE id = 9`);
    const files = ['list.csv', 'more.jsonl'];
    for (const [options, counts] of [
      [[], '2 created, 5 unchanged, 0 replaced, 8 rejected'],
      [['--replace'], '0 created, 5 unchanged, 6 replaced, 4 rejected'],
    ] as const) {
      const dryRun = await site.run('import', '--dry-run', ...options, ...files);
      const imported = await site.run('import', ...options, ...files);
      assert.deepEqual([countsIn(dryRun), countsIn(imported)], [counts, counts]);
      assert.match(dryRun.stdout, /^rejected row: list\.csv .*: the stored plant with this id is damaged/m);
      assert.match(
        dryRun.stdout,
        /^other content: list\.csv .*: 3: "three" \(tag ""\) → "three" \(no tag\)$/m,
      );
    }
    const rejects = await site.read('list.rejects.csv');
    assert.match(
      rejects,
      /^4,FOUR,,9,8,41201,"plant 4 .*, revision 1, which an earlier row of this import has"$/m,
    );
    assert.match(rejects, /^2,TWO,.*,"plant 2 is stored with other content, revision 1"$/m);
  });

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

test('a gateway that drops the header ends the import at the first replaced plant, and names it', async () => {
  await using service = await startTestService();
  await using proxy = await startProxy(service, headers => {
    delete headers['if-plant-revision'];
    return true;
  });
  const direct = await siteOf(service, service.token);
  const site = await siteOf(service, service.token, proxy.url);
  const rows = (word: string): string =>
    Array.from({ length: 500 }, (_, index) => `${index},${word} ${index}\n`).join('');
  await direct.write({ 'stored.csv': `id,name\n${rows('stored')}` });
  assert.equal((await direct.run('import', 'stored.csv')).exitCode, 0);
  const before = await direct.exported();
  // An import that ends early knows the time only to a second.
  await wait(1_100);

  await site.write({ 'list.csv': `id,name\n${rows('other')}` });
  const ended = await site.run('import', 'list.csv');
  assert.match(
    ended.stderr,
    /^plant-store: plant 0 was replaced by revision 2, although import sends If-Plant-Revision: 0, .* update the service, /,
  );
  assert.match(ended.stdout, /^1 row: 0 created, 0 unchanged, 1 replaced, 0 rejected/);
  assert.equal(ended.exitCode, 1);
  const { FOLDER: folder, ...env } = direct.env as Record<string, string> & { FOLDER: string };
  await paste(commandIn(ended, 'export --at'), folder, env);
  assert.equal(await direct.exported(), before);
});

test('rows whose responses are lost are sent again, and count as stored', async () => {
  await using service = await startTestService();
  await using proxy = await startProxy(service, (_, number) => number % 7 !== 3);
  const site = await siteOf(service, service.token, proxy.url);
  const rows = Array.from({ length: 100 }, (_, index) => `${index},name ${index},\n`);
  await site.write({ 'list.csv': `id,name,tag\n${rows.join('')}` });
  const { exitCode, stdout } = await site.run('import', 'list.csv');
  assert.match(stdout, /^100 rows: \d+ created, [1-9]\d* unchanged, 0 replaced, 0 rejected/);
  assert.equal(exitCode, 0);
  assert.equal(await site.exported(), `id,name,tag\n${rows.join('')}`);
});

suite('the time of the command that undoes --replace', () => {
  const DATE = 'Mon, 30 Nov 2026 05:00:00 GMT';
  const WAIT_MS = 300;
  const replaceWith = async (fields: Record<string, string>): Promise<string> => {
    await using server = await startFaulty(({ respond }) => {
      const stored = { 'Plant-Outcome': 'revised', 'Plant-Revision': '2', 'Plant-Id': '1', ...fields };
      setTimeout(() => respond(200, '{"name":"a"}', stored), WAIT_MS);
    });
    const args = ['import', '--replace', '--url', server.url, '--token', 'plant_test', '-'];
    const finished = await commands.run({ args, stdin: 'id,name\n1,a\n' });
    return linesOf(finished.stdout).at(-1)!;
  };

  test('is before the first row was sent, by the clock of the service', async () => {
    const [, time] = / --at (\S+) --changed /.exec(await replaceWith({ Date: DATE }))!;
    const ahead = Date.parse(DATE) - Date.parse(time!);
    assert.ok(ahead > WAIT_MS - 50 && ahead < WAIT_MS + 10_000, `${ahead} ms`);
  });

  test('is for a person to choose if no response has one', async () => {
    assert.match(await replaceWith({ Date: 'x' }), /docs\/operate\/corrections\.md/);
  });
});

suite('the store with which a dry run compares', () => {
  const folder = testFolder();
  const missing = `sqlite:${folder}/none.db`;
  const run = (args: string[], env: Record<string, string> = {}): Promise<Finished> =>
    commands.run({ args: ['import', ...args, '-'], stdin: 'id,name\n1,a\n', env, cwd: folder });
  const USES: [
    what: string,
    args: string[],
    env: Record<string, string>,
    expected: RegExp,
    exitCode: number,
  ][] = [
    [
      'named by the option',
      ['--dry-run', '--database', missing],
      {},
      /^plant-store: there is no plant store at /,
      1,
    ],
    [
      'needed for a file',
      ['--dry-run', '--show-replaced', 'r.csv'],
      {},
      /^plant-store: there is no plant store at /,
      1,
    ],
    ['for a file that exists', ['--dry-run', '--show-replaced', folder], {}, /already exists/, 1],
    ['without a dry run', ['--token', 'x', '--database', missing], {}, /are for --dry-run/, 2],
  ];
  for (const [what, args, env, expected, exitCode] of USES)
    test(`is an error if it is ${what}`, async () => {
      assertFailed(await run(args, env), expected, exitCode);
    });

  test('can be missing if only a variable names it, and the dry run says so', async () => {
    for (const database of [missing, 'nonsense']) {
      const { stdout, exitCode } = await run(['--dry-run'], { PLANT_STORE_DATABASE: database });
      assert.match(stdout, /^not compared with a store: .*--database\n1 row, /);
      assert.equal(exitCode, 0);
    }
  });

  test('is named, since it may be another one than that of the service', async () => {
    await using service = await startTestService();
    const { stdout } = await run(['--dry-run', '--database', service.database]);
    assert.ok(
      stdout.startsWith(`compared with the store ${service.database}: import would make 1 created, `),
    );
  });
});
