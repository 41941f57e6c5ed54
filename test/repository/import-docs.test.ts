import assert from 'node:assert/strict';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { paste } from '../harness/pasted-commands.ts';
import { startTestService } from '../harness/running-service.ts';

const ROOT = new URL('../../', import.meta.url);

/** What each command of docs/import.md says, in their order. */
const SAYS: RegExp[] = [
  /^compared with .* 4 created, 0 unchanged, 0 replaced, 0 rejected$/m,
  /^4 rows: 4 created, /,
  /^other content: .* 2026002: "Fagus sylvatica" \(tag "bed 1"\) → "Fagus sylvatica" \(tag "bed 2"\)$/m,
  /^5 rows: 1 created, 3 unchanged, 0 replaced, 1 rejected/,
  /^1 row: 0 created, 0 unchanged, 1 replaced, 0 rejected/,
  /^3 rows: 3 created, .*\n3 ids are in ids\.csv$/m,
  /^3 rows: 0 created, 3 unchanged, /,
];

test('the commands of docs/import.md work in this order, and so does the printed undo', async () => {
  await using service = await startTestService();
  cpSync(new URL('examples', ROOT), join(service.folder, 'examples'), { recursive: true });
  const env = {
    PLANT_STORE_URL: service.url,
    PLANT_STORE_TOKEN: service.token,
    PLANT_STORE_DATABASE: service.database,
  };
  // The README imports it before.
  await paste('npx plant-store import examples/us-trees.csv', service.folder, env);
  const text = readFileSync(new URL('docs/import.md', ROOT), 'utf8');
  const lines = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block]) =>
    block!.trimEnd().split('\n'),
  );
  assert.equal(lines.length, SAYS.length);
  const outputs: string[] = [];
  for (const [index, line] of lines.entries()) {
    // A command with rejected rows exits with 1.
    const { stdout } = await paste(`${line} || [ $? = 1 ]`, service.folder, env);
    assert.match(stdout, SAYS[index]!, line);
    outputs.push(stdout);
  }
  const [, exported, imported] =
    /(npx plant-store export .* --changed .*)\n.*(npx plant-store import .*)$/m.exec(outputs.join('\n'))!;
  await paste(`${exported}\n${imported}`, service.folder, env);
  const { stdout } = await paste('npx plant-store show 2026002', service.folder, env);
  assert.match(stdout, /revision 3.*bed 1/s);

  // In a checkout, git ignores the files of users.
  cpSync(new URL('.gitignore', ROOT), join(service.folder, '.gitignore'));
  const status = await paste('git init --quiet && git status --porcelain', service.folder, env);
  assert.equal(status.stdout, '?? .gitignore\n?? examples/\n');
});
