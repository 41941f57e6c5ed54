import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startTestService } from '../harness/running-service.ts';
import { testFolder } from '../harness/test-folder.ts';

/** The modules of the examples, by their names in the documents. */
const MODULES: Record<string, string> = {
  'plant-store-client': import.meta.resolve('../../src/client/plant-store.ts'),
  'openapi-fetch': import.meta.resolve('openapi-fetch'),
  './generated/client.gen.ts': import.meta.resolve('./generated/client.gen.ts'),
  './generated/sdk.gen.ts': import.meta.resolve('./generated/sdk.gen.ts'),
};
const EXACT = '200 9007199254740997\n';
const STORED_JSON =
  '{"id":"9007199254740993","name":"Monstera deliciosa","tag":"houseplant","revision":1,"outcome":"created"}\n';
/** What the examples of each document print. */
const OUTPUTS = {
  'docs/client.md': [
    'created plant 9007199254740995, revision 1\n',
    '1000 stored\n',
    '7597049000137840730n 2360040201619519176n\n',
    'expected revision 0, stored is 1\n',
    'create a new token\n',
  ],
  'packages/client/README.md': [STORED_JSON],
  'docs/generated-clients.md': [EXACT, EXACT],
};

for (const [path, outputs] of Object.entries(OUTPUTS)) {
  test(`the examples of ${path} print what the page states, each with a new service`, async () => {
    const text = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
    const examples = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, example]) => example!);
    assert.equal(examples.length, outputs.length);
    const folder = testFolder();
    for (const [index, example] of examples.entries()) {
      await using service = await startTestService();
      const file = join(folder, `example-${index}.ts`);
      writeFileSync(
        file,
        example.replace(/(?<= from )'(.*)'/g, (_, name) => `'${MODULES[name]}'`),
      );
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], {
        env: { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token },
        timeout: 60_000,
      });
      assert.deepEqual([stdout, stderr], [outputs[index], '']);
    }
  });
}
