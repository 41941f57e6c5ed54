import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { commandProcess } from '../../harness/command-lines.ts';
import { commandIn, countsIn, linesOf, pasteUndo, siteOf } from '../../harness/import-site.ts';
import { paste } from '../../harness/pasted-commands.ts';
import { assertFailed, type Finished } from '../../harness/program.ts';
import { addToken, startTestService } from '../../harness/running-service.ts';
import { enginesUnderTest } from '../../harness/store-under-test.ts';
import { changeRows } from '../../harness/stored-revisions.ts';
import { testFolder } from '../../harness/test-folder.ts';

const engines = await enginesUnderTest();
const commands = commandProcess();

const SHARED = new URL('../../../../shared/data/', import.meta.url);
const TREES = readFileSync(new URL('../../../examples/us-trees.csv', import.meta.url), 'utf8');

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
      const site = await siteOf(commands, service, token);
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
      assert.match(dryRun.stdout, new RegExp(` ${common.toLocaleString('en-GB')} rejected rows, `));
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
      const { folder, env } = site;
      const replaced = { ...(await paste(commandIn(safe, 'import --replace'), folder, env)), exitCode: 0 };
      assert.equal(countsIn(replaced), countsIn(predicted));
      assert.notEqual(await site.exported(), afterSafe);

      const undone = await pasteUndo(replaced, site);
      assert.equal(countsIn(undone), counts(0, 0, common, 0));
      assert.equal(await site.exported(), afterSafe);
    });
});

for (const under of engines)
  test(`a dry run on ${under.name} predicts the counts of the import, also with repeated ids`, async () => {
    const database = await under.newDatabase();
    const token = await addToken(database, 'test');
    await using service = await startTestService({ database });
    const site = await siteOf(commands, service, token);
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
      /^4,FOUR,,9,8,41201,"plant 4 .*, revision 1; an earlier row of this import has its id, too"$/m,
    );
    assert.match(rejects, /^2,TWO,.*,"plant 2 is stored with other content, revision 1"$/m);
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

  test('may have none of the ids, or content of one row', async () => {
    await using service = await startTestService();
    const site = await siteOf(commands, service);
    await site.write({
      'stored.csv': 'id,name\n1,a\n2,b\n',
      'other.csv': 'id,name\n7,a\n8,b\n',
      'one.csv': 'id,name\n2,x\n',
    });
    const empty = await site.run('import', '--dry-run', 'stored.csv');
    assert.doesNotMatch(empty.stdout, /no id of the list/);
    assert.equal((await site.run('import', 'stored.csv')).exitCode, 0);
    const other = await site.run('import', '--dry-run', 'other.csv');
    assert.match(other.stdout, /^no id of the list is in the store, which has 2 plants$/m);
    assert.equal(other.exitCode, 0);
    const one = await site.run('import', '--dry-run', 'one.csv');
    assert.doesNotMatch(one.stdout, /no id of the list/);
    assert.match(
      one.stdout,
      /^1 row has other content than is stored: import rejects this row, and import /m,
    );
  });

  test('has a count of all rows, although the import would end at a faulty file', async () => {
    await using service = await startTestService();
    const site = await siteOf(commands, service);
    await site.write({ 'bad.csv': 'name\na\n', 'good.csv': 'id,name\n1,a\n' });
    const { stdout, exitCode } = await site.run('import', '--dry-run', 'bad.csv', 'good.csv');
    assert.match(stdout, /: import would end at the first faulty file; otherwise it would make 1 created, /);
    assert.equal(exitCode, 1);
  });
});
