import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { commandProcess } from '../../harness/command-lines.ts';
import { commandIn, linesOf, pasteUndo, type Site } from '../../harness/import-site.ts';
import { paste } from '../../harness/pasted-commands.ts';
import { assertFailed, type Finished } from '../../harness/program.ts';
import { addToken, type RunningService, startTestService } from '../../harness/running-service.ts';
import { postgresUnderTest } from '../../harness/store-under-test.ts';
import { testFolder } from '../../harness/test-folder.ts';

const postgres = await postgresUnderTest();
const commands = commandProcess();

const PLACEHOLDER = 'DATABASE';
const STORED = 'id,name,tag\n1,a,\n2,b,\n';
const UNDONE =
  /^to undo what 1 row replaced, replace DATABASE by the store of the service at \S+ \(sqlite:PATH or postgres:\/\/…\), and run on the machine of that store: npx plant-store export --database DATABASE --at /m;

/** A site whose commands read the store in ./data, unless a variable names another one. */
async function newSite(
  service: RunningService,
  variables: Record<string, string> = {},
  token = service.token,
  folder = testFolder(),
): Promise<Pick<Site, 'env' | 'folder' | 'run' | 'write'>> {
  const env = { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: token, ...variables };
  const write: Site['write'] = async files => {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  };
  mkdirSync(join(folder, 'data'), { recursive: true });
  await write({ 'stored.csv': STORED, 'list.csv': 'id,name,tag\n2,B,\n' });
  return { env, folder, write, run: (...args) => commands.run({ args, env, cwd: folder }) };
}

async function importStored({ run }: Pick<Site, 'run'>): Promise<void> {
  assert.equal((await run('import', 'stored.csv')).exitCode, 0);
}

async function importBoth({ run }: Pick<Site, 'run'>): Promise<Finished> {
  await importStored({ run });
  const replaced = await run('import', '--replace', 'list.csv');
  assert.match(replaced.stdout, /^1 row: 0 created, 0 unchanged, 1 replaced, /);
  return replaced;
}

suite('the printed undo', () => {
  test('has a placeholder if the store of this folder is another one, which commands reject', async () => {
    await using service = await startTestService();
    const site = await newSite(service);
    assert.equal((await site.run('token', 'create', 'other')).exitCode, 0);
    const replaced = await importBoth(site);
    assert.match(replaced.stdout, UNDONE);
    const command = commandIn(replaced, 'to undo what ');
    await assert.rejects(paste(command, site.folder, site.env), /invalid database URL/);
    const named = replaced.stdout.replaceAll(`--database ${PLACEHOLDER}`, `--database ${service.database}`);
    await pasteUndo({ ...replaced, stdout: named }, site);
    const { stdout } = await site.run('export', '--database', service.database);
    assert.equal(stdout, STORED);
  });

  test('has a placeholder if the store of this folder is an older copy, which has the token, too', async () => {
    await using service = await startTestService();
    const site = await newSite(service);
    const copy = ['copy', '--from', service.database, '--to', 'sqlite:data/plant-store.db'];
    assert.equal((await site.run(...copy)).exitCode, 0);
    assert.match((await importBoth(site)).stdout, UNDONE);
  });

  test('names no store if the service uses that of this folder', async () => {
    const folder = testFolder();
    mkdirSync(join(folder, 'data'));
    await using service = await startTestService({ database: `sqlite:${folder}/data/plant-store.db` });
    const site = await newSite(service, {}, service.token, folder);
    const replaced = await importBoth(site);
    assert.match(replaced.stdout, /^to undo what 1 row replaced, run: npx plant-store export --at /m);
    await pasteUndo(replaced, site);
    assert.equal((await site.run('export')).stdout, STORED);
  });

  test('names the store of the variable, and works without the variable', async () => {
    await using service = await startTestService();
    const site = await newSite(service, { PLANT_STORE_DATABASE: service.database });
    const replaced = await importBoth(site);
    assert.ok(replaced.stdout.includes(`, run: npx plant-store export --database ${service.database} --at `));
    const { PLANT_STORE_DATABASE: _, ...env } = site.env;
    await pasteUndo(replaced, { ...site, env });
    assert.equal((await site.run('export')).stdout, STORED);
  });

  test('shows no password, but says that the variable has the store', async () => {
    const database = await postgres.newDatabase();
    const token = await addToken(database, 'test');
    await using service = await startTestService({ database });
    const site = await newSite(service, { PLANT_STORE_DATABASE: database }, token);
    const replaced = await importBoth(site);
    assert.match(
      replaced.stdout,
      /, run where PLANT_STORE_DATABASE has the value that it has here: npx plant-store export --at /,
    );
    const command = commandIn(replaced, 'to undo what ');
    const { stderr } = await paste(command, site.folder, site.env);
    assert.match(stderr, /^1 changed plant printed from the store postgres:/m);
    assert.doesNotMatch(replaced.stdout + replaced.stderr + stderr, /secret/);
  });
});

test('after an import into a store with other plants, the last line shows the new ones', async () => {
  await using service = await startTestService();
  const site = await newSite(service, { PLANT_STORE_DATABASE: service.database });
  await importStored(site);
  // Without --replace, the time can be a second too early.
  await wait(1_100);
  await site.write({ 'wrong.csv': 'id,name\n1,x\n2,y\n7,new\n8,"new\n""8"""\n' });
  const wrong = await site.run('import', 'wrong.csv');
  assert.match(wrong.stdout, /^2 new plants were stored; if this is the wrong store, remove them as /m);
  const command = commandIn(wrong, 'if this is the wrong store');
  const { stdout } = await paste(`${command} || [ $? = 1 ]`, site.folder, site.env);
  const added = linesOf(stdout).filter(line => line.startsWith('> '));
  assert.deepEqual(added, ['> 7,new,', '> 8,"new', '> ""8""",']);
});

test('after --replace, the last line shows the new plants, which the undo does not remove', async () => {
  await using service = await startTestService();
  const site = await newSite(service, { PLANT_STORE_DATABASE: service.database });
  await importStored(site);
  await site.write({ 'wrong.csv': 'id,name\n1,x\n2,y\n7,new\n8,newer\n' });
  const wrong = await site.run('import', '--replace', 'wrong.csv');
  assert.match(linesOf(wrong.stdout).at(-1)!, /^2 new plants were stored; .* after the undo, run: /);
  await pasteUndo(wrong, site);
  const command = commandIn(wrong, 'new plants were stored');
  const { stdout } = await paste(`${command} || [ $? = 1 ]`, site.folder, site.env);
  assert.deepEqual(
    linesOf(stdout).filter(line => /^[<>]/.test(line)),
    ['> 7,new,', '> 8,newer,'],
  );
});

const NEW = Array.from({ length: 40 }, (_, index) => `${100 + index},new\n`).join('');
const RIGHT_LISTS: [what: string, rows: string][] = [
  ['a few new plants', '1,a\n7,new\n2,c\n9,newest\n'],
  ['ids that repeat in it', '7,new\n7,other\n8,new\n8,other\n9,new\n'],
  ['two of many rows that have changed', `1,A\n2,B\n${NEW}`],
];
for (const [what, rows] of RIGHT_LISTS)
  test(`after an import of a list with ${what}, no line doubts the store`, async () => {
    await using service = await startTestService();
    const site = await newSite(service);
    assert.equal((await site.run('import', 'stored.csv')).exitCode, 0);
    await site.write({ 'monthly.csv': `id,name\n${rows}` });
    const { stdout } = await site.run('import', 'monthly.csv');
    assert.match(stdout, /^\d+ rows? (?:has|have) other content .*, replace (?:it|them): /m);
    assert.doesNotMatch(stdout, /wrong store/);
  });

suite('a dry run and the store of the service', () => {
  test('are compared if the store has the token, also in another folder', async () => {
    await using service = await startTestService();
    const site = await newSite(service, { PLANT_STORE_DATABASE: service.database });
    const { stdout } = await site.run('import', '--dry-run', 'stored.csv');
    assert.ok(
      stdout.startsWith(`compared with the store ${service.database}: import would make 2 created, `),
    );
  });

  test('are not compared if the store of this folder lacks the token, unless an option names it', async () => {
    await using service = await startTestService();
    const site = await newSite(service);
    assert.equal((await site.run('token', 'create', 'other')).exitCode, 0);
    const dryRun = await site.run('import', '--dry-run', 'stored.csv');
    assert.match(
      dryRun.stdout,
      /^not compared with a store: sqlite:\.\/data\/plant-store\.db does not have the token of PLANT_STORE_TOKEN, so it may not be the store of the service at \S+; to compare, .* with --database\n2 rows, /,
    );
    assert.equal(dryRun.exitCode, 0);
    assertFailed(
      await site.run('import', '--dry-run', '--show-replaced', 'all.csv', 'stored.csv'),
      /does not have the token of PLANT_STORE_TOKEN, .*; name that store with --database/,
      1,
    );
    const other = `sqlite:${site.folder}/data/plant-store.db`;
    const named = await site.run('import', '--dry-run', '--database', other, 'stored.csv');
    assert.match(
      named.stdout,
      /^compared with the store \S+, which does not have the token of PLANT_STORE_TOKEN, so it may be another than that of the service at \S+: import would make 2 created, /,
    );
  });

  test('are compared without a token, and the store is named as one that may be another', async () => {
    await using service = await startTestService();
    const { stdout } = await commands.run({
      args: ['import', '--dry-run', '--database', service.database, '-'],
      stdin: STORED,
      cwd: service.folder,
    });
    assert.ok(
      stdout.startsWith(
        `compared with the store ${service.database}, which may be another than that of the service, since there is no token to tell: import would make 2 created, `,
      ),
    );
  });
});
