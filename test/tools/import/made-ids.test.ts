import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { commandProcess } from '../../harness/command-lines.ts';
import type { Finished } from '../../harness/program.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';

const commands = commandProcess();

function importInto({ url, token, folder }: RunningService, ...args: string[]): Promise<Finished> {
  return commands.run({ args: ['import', '--url', url, '--token', token, ...args], cwd: folder });
}

async function write({ folder }: RunningService, files: Record<string, string>): Promise<void> {
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
}

function read({ folder }: RunningService, name: string): Promise<string> {
  return readFile(join(folder, name), 'utf8');
}

/** The rows of a store, without the header. */
async function exported({ database }: RunningService): Promise<string[]> {
  const { stdout } = await commands.run({ args: ['export', '--database', database] });
  return stdout.trimEnd().split('\n').slice(1);
}

/** The id of texts in NFC, by the documented rule. */
function idOf(...texts: string[]): bigint {
  return BigInt(`0x${createHash('sha256').update(texts.join('\u001f')).digest('hex')}`) >> 193n;
}

/** Two texts with the id 3203379237694747858. */
const SAME_ID = ['52f7a33a86826c53', '037de733cd6984b2'] as const;

suite('ids of texts', { concurrency: 4 }, () => {
  test('are the same from every form of file and in every run, and stand in the ids file', async () => {
    await using service = await startTestService();
    await write(service, {
      'list.csv': 'Taxon;TREE;plot\nAcer;12;Ä\nRosa;013;"a;b"\n',
      // The name of a column can have any case and Unicode form, as the text itself.
      'list.tsv': 'Plot\tTaxon\tTree\nA\u0308\tAcer\t12\na;b\tRosa\t013\n',
      'lines.jsonl':
        '{"plot":"\\u00c4","TREE":12,"Taxon":"Acer"}\n{"TREE":"013","plot":"a;b","Taxon":"Rosa"}\n',
      'array.json': '[{"plot":"A\u0308","TREE":12,"Taxon":"Acer","name":"common"}]',
    });
    const options = ['--id-from', 'plot,TREE', '--columns', 'name=Taxon'];
    const first = await importInto(service, ...options, '--ids-file', 'ids.csv', 'list.csv');
    assert.match(first.stdout, /^2 rows: 2 created, .*\n2 ids are in ids\.csv\n$/);
    assert.equal(first.stderr, '');
    const [acer, rosa] = [idOf('Ä', '12'), idOf('a;b', '013')];
    assert.equal(await read(service, 'ids.csv'), `id,plot,TREE\n${acer},Ä,12\n${rosa},a;b,013\n`);
    const again = await importInto(service, ...options, 'list.tsv', 'lines.jsonl', 'array.json');
    assert.match(again.stdout, /^5 rows: 0 created, 5 unchanged, 0 replaced, 0 rejected/);
    assert.deepEqual((await exported(service)).toSorted(), [`${acer},Acer,`, `${rosa},Rosa,`].toSorted());
  });

  test('that cannot be made reject their rows, which go back in with the printed command', async () => {
    await using service = await startTestService();
    // So many texts lie between the two that the table of texts grows.
    const between = Array.from({ length: 9000 }, (_, index) => `n,key ${index},\n`).join('');
    await write(service, {
      'one.csv': `name,Key no,note\nfirst,${SAME_ID[0]},\nfirst again,${SAME_ID[0]},\n${between}`,
      'two.csv':
        `name,Key no,note\nother,${SAME_ID[1]},\nnone,,\n,"",n\nblank,\u00a0,\nunit,a\u001fb,\n` +
        'short,x\nquote,"y" z,\n',
      'three.jsonl': '{"name":"bool","Key no":true}\n{"name":"null","Key no":null}\n{"name":0}\n[]\n{\n',
    });
    const files = ['one.csv', 'two.csv', 'three.jsonl'];
    const dryRun = await commands.run({
      args: ['import', '--dry-run', '--id-from', 'key no', ...files],
      cwd: service.folder,
    });
    const { stdout, exitCode } = await importInto(service, '--id-from', 'Key no', ...files);
    assert.match(stdout, /^9,014 rows: 9,001 created, 0 unchanged, 0 replaced, 13 rejected/);
    assert.match(
      stdout,
      /\ncorrect 12 rows, and import again: npx plant-store import --url \S+ --id-from 'Key no' one\.rejects\.csv two\.rejects\.csv three\.rejects\.jsonl\n1 row has the same text in "Key no" as an earlier row, but other content: if these are different plants, the text is not unique; add a column to --id-from and import the original; .*\n$/,
    );
    assert.equal(exitCode, 1);
    const faults = {
      csv: [
        /^other,.*"""037de733cd6984b2"" gives the id 3203379237694747858, as another text in an earlier row; /,
        /^none,,,3,2,40002,"""Key no"" has no text, of which the id is made"$/,
        /^,"",n,4,3,40002,"""Key no"" has no text, .*; name is required"$/,
        /^blank,.*,5,4,40002,"""Key no"" has no text, /,
        /^unit,.* contains U\+001F/,
        /^short,x,,7,6,fields 2,"the row has 2 fields, /,
        /^"quote,""y"" z,",,,8,7,quotes,"the row has a misplaced quote; /,
      ],
      jsonl: [
        /"name":"bool","Key no":true.*has no text/,
        /"null".*has no text/,
        /has no text.*; name 0 is not a text/,
      ],
    };
    const rejects = (await read(service, 'two.rejects.csv')).trimEnd().split('\n');
    assert.equal(rejects.shift(), 'name,Key no,note,line,row,error,message');
    for (const [index, pattern] of faults.csv.entries()) assert.match(rejects[index]!, pattern);
    const jsonRejects = await read(service, 'three.rejects.jsonl');
    for (const [index, pattern] of faults.jsonl.entries())
      assert.match(jsonRejects.split('\n')[index]!, pattern);
    // The dry run reports the same rows, and what the ids would be.
    assert.equal(dryRun.stdout.match(/^rejected row: /gm)?.length, 12);
    assert.match(
      dryRun.stdout,
      /^id: one\.csv line 2 \(row 1\): 3203379237694747858 of "52f7a33a86826c53"$/m,
    );
    assert.match(dryRun.stdout, /, 0 rounded ids, /);
    for (const each of [stdout, dryRun.stdout])
      assert.match(each, /^1 row had the same text in "key no" as an earlier row; /im);
    assert.match(dryRun.stdout, /^rejected row: two\.csv line 2 \(row 1\): "037de733cd6984b2" gives /m);

    const corrected = (await read(service, 'two.rejects.csv'))
      .replace(SAME_ID[1], 'c')
      .replace('none,,', 'none,b,');
    await write(service, { 'two.rejects.csv': corrected });
    const second = await importInto(service, '--id-from', 'Key no', '--rejects', 'r.csv', 'two.rejects.csv');
    assert.match(second.stdout, /^7 rows: 2 created, 0 unchanged, 0 replaced, 5 rejected/);
    const stored = await exported(service);
    for (const [text, name] of [
      ['b', 'none'],
      ['c', 'other'],
      [SAME_ID[0], 'first'],
    ] as const)
      assert.ok(stored.includes(`${idOf(text)},${name},`), name);
  });

  test('that different plants share are named as not unique, and --replace is not for them', async () => {
    await using service = await startTestService();
    await write(service, {
      'stored.csv': 'name,key\nAcer,A\nRosa,B\n',
      'list.csv': 'name,key\nAcer,A\nFagus,A\nRosa canina,B\nPoa,B\nRosa canina,B\nSalvia,C\nThymus,C\n',
      'only.csv': 'name,key\nAcer,A\nFagus,A\n',
    });
    const options = ['--id-from', 'key'];
    const dryRun = (file: string): Promise<Finished> =>
      importInto(service, '--dry-run', '--database', service.database, ...options, file);
    assert.equal((await importInto(service, ...options, 'stored.csv')).exitCode, 0);

    // Poa collides with a row that is rejected itself, and the second Rosa canina with none.
    const predicted = await dryRun('list.csv');
    const { stdout } = await importInto(service, ...options, 'list.csv');
    for (const each of [predicted.stdout, stdout]) {
      assert.match(each, /\b1 created, 1 unchanged, 0 replaced, 5 rejected/);
      assert.match(
        each,
        /^3 rows have the same text in "key" as an earlier row, but other content: .* add a column to --id-from/m,
      );
    }
    assert.match(predicted.stdout, /^2 rows have other content than is stored: import rejects these rows, /m);
    assert.match(
      stdout,
      /^2 rows have other content than is stored; delete the other rows of list\.rejects\.csv; then, if the rows are right, replace them: npx plant-store import --replace .* list\.rejects\.csv$/m,
    );
    assert.doesNotMatch(stdout, /correct/);
    const rejects = await read(service, 'list.rejects.csv');
    assert.equal(rejects.match(/; an earlier row of this import has its id, too/g)?.length, 3);
    assert.match(rejects, /^Poa,B,5,4,.*, too"$/m);

    for (const each of [await dryRun('only.csv'), await importInto(service, ...options, 'only.csv')]) {
      assert.match(each.stdout, /^1 row has the same text in "key" as an earlier row, but other content: /m);
      assert.doesNotMatch(each.stdout, /--replace/);
      assert.equal(each.exitCode, 1);
    }
  });

  test('need the same options for a rejects file, also if the text is the name or an ignored id', async () => {
    await using service = await startTestService();
    await write(service, { 'list.csv': 'id,Taxon,name\nA1,Acer,\nA2,,x\n' });
    const options = ['--id-from', 'id,Taxon', '--columns', 'name=Taxon,id='];
    const first = await importInto(service, ...options, '--ids-file', 'ids.csv', 'list.csv');
    const command = /npx plant-store import --url \S+ (.*) list\.rejects\.csv\n$/.exec(first.stdout)?.[1];
    assert.equal(command, options.join(' '));
    assert.equal(await read(service, 'ids.csv'), `id,text of id,Taxon\n${idOf('A1', 'Acer')},A1,Acer\n`);
    const rejects = await read(service, 'list.rejects.csv');
    assert.match(rejects, /^ignored id,Taxon,name,line,row,error,message\nA2,,x,3,2,/);
    const withoutOptions = await importInto(service, '--replace', 'list.rejects.csv');
    assert.match(withoutOptions.stderr, /: the column id is missing; .*; nothing was sent$/m);
    await write(service, { 'list.rejects.csv': rejects.replace('A2,,', 'A2,Rosa,') });
    assert.match((await importInto(service, ...options, 'list.rejects.csv')).stdout, /^1 row: 1 created/);
    const expected = [`${idOf('A1', 'Acer')},Acer,`, `${idOf('A2', 'Rosa')},Rosa,`];
    assert.deepEqual((await exported(service)).toSorted(), expected.toSorted());
  });
});

suite('numbered rows', { concurrency: 4 }, () => {
  test('keep their numbers in the rejects file and in the ids file', async () => {
    await using service = await startTestService();
    await write(service, {
      'list.csv': 'name,tag,id\n"a, b",t,X1\n,t,X2\nshort,t\nquote "q,t,X4\nlast,t,X5\n',
      'lines.jsonl': '{"name":"c","id":"X6"}\n{"name":0,"id":"X7"}\n{"name"\n{"name":"d"}\n',
    });
    const options = ['--number-from', '9223372036854775798', '--columns', 'id='];
    const args = [...options, '--ids-file', 'ids.csv', 'list.csv', 'lines.jsonl'];
    const number = (row: number): bigint => 9223372036854775797n + BigInt(row);
    const dryRun = await commands.run({ args: ['import', '--dry-run', ...args], cwd: service.folder });
    assert.match(
      dryRun.stdout,
      new RegExp(`^id: list\\.csv line 2 \\(row 1\\): ${number(1)} for "a, b"$`, 'm'),
    );
    assert.match(dryRun.stdout, /, 4 distinct ids, .* 0 rounded ids, .* 5 rejected rows, /);
    assert.ok(!existsSync(join(service.folder, 'ids.csv')));

    const first = await importInto(service, ...args);
    assert.match(first.stdout, /^9 rows: 4 created, 0 unchanged, 0 replaced, 5 rejected/);
    assert.match(
      first.stdout,
      new RegExp(`\n9 ids are in ids\\.csv; the next free number is ${number(10)}\n`),
    );
    assert.match(first.stdout, / import --url \S+ list\.rejects\.csv lines\.rejects\.jsonl\n$/);
    const ids = await read(service, 'ids.csv');
    const names = ['"a, b",t', ',', ',', ',', 'last,t', 'c,', ',', ',', 'd,'];
    assert.equal(
      ids,
      `id,name,tag\n${names.map((name, index) => `${number(index + 1)},${name}\n`).join('')}`,
    );
    const csv = await read(service, 'list.rejects.csv');
    assert.equal(
      csv,
      'id,name,tag,ignored id,line,row,error,message\n' +
        `${number(2)},,t,X2,3,2,40002,name is required\n` +
        `${number(3)},short,t,,4,3,fields 3,"the row has 2 fields, but the first row names 3 columns"\n` +
        `"quote ""q,t,X4",,,,5,4,quotes,"the row has a misplaced quote; write each value into its own column; in a text editor, enclose a value that has quotes, and double these; its id is ${number(4)}"\n`,
    );
    const jsonl = await read(service, 'lines.rejects.jsonl');
    assert.match(jsonl, new RegExp(`^\\{"id":${number(7)},"name":0,"ignored id":"X7","line":2,"row":2,`));
    assert.match(jsonl, new RegExp(`\n\\{"text":.*; its id is ${number(8)}"\\}\n$`));

    // The ids file is itself a list of plants.
    const { stdout: list } = await importInto(service, 'ids.csv');
    assert.match(list, /^9 rows: 0 created, 4 unchanged, 0 replaced, 5 rejected/);
    // Unchanged rows are rejected for the same reasons.
    const unchanged = await importInto(service, 'list.rejects.csv', 'lines.rejects.jsonl');
    assert.match(unchanged.stdout, /^5 rows: 0 created, 0 unchanged, 0 replaced, 5 rejected/);
    assert.equal(
      (await read(service, 'list.rejects-2.csv')).replace(/,[2-4],[1-3],(?=40002|quotes|fields)/g, ''),
      csv.replace(/,[3-5],[2-4],(?=40002|quotes|fields)/g, ''),
    );
    await write(service, {
      'list.rejects.csv': csv
        .replace(',,t,X2', ',second,t,X2')
        .replace('short,t,,', 'short,t,X3,')
        .replace('"quote ""q,t,X4",,,', `${number(4)},quote,t,`),
      'lines.rejects.jsonl': jsonl.replace('"name":0', '"name":"seventh"').split('\n')[0]!,
    });
    const corrected = await importInto(service, 'list.rejects.csv', 'lines.rejects.jsonl');
    assert.match(corrected.stdout, /^4 rows: 4 created/);
    const stored = [
      '"a, b",t',
      'second,t',
      'short,t',
      'quote,t',
      'last,t',
      'c,',
      'seventh,',
      undefined,
      'd,',
    ];
    const expected = stored.map((plant, index) => plant && `${number(index + 1)},${plant}`);
    assert.deepEqual(
      await exported(service),
      expected.filter(each => each !== undefined),
    );
  });

  test('end at the largest id', async () => {
    await using service = await startTestService();
    await write(service, { 'list.csv': 'name\na\nb\n' });
    const args = ['--number-from', '9223372036854775807', '--ids-file', 'ids.csv', 'list.csv'];
    const dryRun = await commands.run({ args: ['import', '--dry-run', ...args], cwd: service.folder });
    assert.match(
      dryRun.stdout,
      /^rejected row: list\.csv line 3 \(row 2\): its number would be above 9223372036854775807/m,
    );
    const { stdout } = await importInto(service, ...args);
    assert.match(
      stdout,
      /^1 id is in ids\.csv; no number is free after the largest id, 9223372036854775807$/m,
    );
  });
});

test('options that do not fit the files or each other are named, and nothing is sent or written', async () => {
  await using service = await startTestService();
  const files = {
    'ids.csv': 'mine',
    'list.csv': 'name,key\nAcer,A1\n',
    'with-id.csv': 'name,ID\nAcer,1\n',
    'twice.csv': 'name,key,Key\nAcer,a,b\n',
    'with-id.json': '[{"name":"Acer","key":"A1","id":1}]',
    'r.rejects.csv': 'name,key,line,row,error,message\nAcer,A1,2,1,40002,x\n',
  };
  await write(service, files);
  const numbers = ['--number-from', '1', '--ids-file', 'new.csv'];
  const CASES: [args: string[], exitCode: number, message: RegExp][] = [
    [
      ['--id-from', 'key', 'with-id.csv'],
      1,
      /: with-id\.csv has a column id; use --columns id= .*; nothing was sent$/,
    ],
    [[...numbers, 'with-id.csv'], 1, /: with-id\.csv has a column id; use --columns id= /],
    [
      ['--id-from', 'key', 'with-id.json'],
      1,
      / line 1 \(element 1\) has a member id; use .*; nothing was sent$/,
    ],
    [
      ['--id-from', 'plot', 'list.csv'],
      1,
      / column plot of --id-from is missing; .*"name", "key"; rename a column, .*; nothing was sent$/,
    ],
    [['--id-from', 'key', 'twice.csv'], 1, / column key exists more than once/],
    [
      ['--id-from', 'key', '--ids-file', 'ids.csv', 'list.csv'],
      1,
      /: ids\.csv already exists and was not changed/,
    ],
    [
      ['--id-from', 'key', '--ids-file', 'no/ids.csv', 'list.csv'],
      1,
      /: no\/ids\.csv cannot be created \(ENOENT\)/,
    ],
    [
      [...numbers, 'r.rejects.csv'],
      2,
      / is a rejects file; import it without --number-from; nothing was sent$/,
    ],
    [['--number-from', '1', 'list.csv'], 2, /: --number-from needs --ids-file, /],
    [['--ids-file', 'new.csv', 'list.csv'], 2, /: --ids-file needs --id-from or --number-from; /],
    [
      ['--id-from', 'key', ...numbers, 'list.csv'],
      2,
      /'--number-from <N>' cannot be used with .*'--id-from /,
    ],
    [['--id-from', 'key', '--columns', 'id=key', 'list.csv'], 2, /: --columns id=COLUMN says where ids are/],
    [['--columns', 'id=', 'with-id.csv'], 2, /: --columns id= .* give --id-from or --number-from, too$/],
    [['--columns', 'name=key,tag=key', 'with-id.json'], 2, /Name different columns for id, name and tag/],
    [['--id-from', 'key,,name', 'list.csv'], 2, /Write names of columns, each once/],
    [['--number-from', '007', 'list.csv'], 2, /The id "007" has a leading zero/],
  ];
  for (const [args, exitCode, message] of CASES) {
    const finished = await importInto(service, ...args);
    assert.match(finished.stderr.split('\n')[0]!, message, args.join(' '));
    assert.deepEqual([finished.exitCode, finished.stdout], [exitCode, ''], args.join(' '));
  }
  assert.deepEqual(await exported(service), []);
  assert.equal(await read(service, 'ids.csv'), 'mine');
  assert.deepEqual(
    readdirSync(service.folder).filter(each => /^new|rejects-/.test(each)),
    [],
  );
});
