import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { CONCURRENCY, RESPONSE_TIMEOUT_MS, RETRY_FOR_MS } from '../../src/client/limits.ts';
import type { CreatePlantsOptions, PlantStoreOptions } from '../../src/client/plant-store.ts';
import { ERRORS_OF_ONE_PLANT } from '../../src/client/plant-store-error.ts';
import { startTestService } from '../harness/running-service.ts';
import { testFolder } from '../harness/test-folder.ts';

const DOCUMENT = documentAt('docs/client.md');

/** The modules of the examples, by their names in the documents. */
const MODULES: Record<string, string> = {
  'plant-store-client': import.meta.resolve('../../src/client/plant-store.ts'),
  'openapi-fetch': import.meta.resolve('openapi-fetch'),
  './generated/client.gen.ts': import.meta.resolve('./generated/client.gen.ts'),
  './generated/sdk.gen.ts': import.meta.resolve('./generated/sdk.gen.ts'),
};
const EXACT = '200 9007199254740993\n';
const STORED_JSON =
  '{"id":"9007199254740993","name":"Monstera deliciosa","tag":"houseplant","revision":1,"outcome":"created"}\n';
/** What the examples of each document print. */
const OUTPUTS = {
  'docs/client.md': ['created plant 9007199254740993, revision 1\n', '1000 stored\n', 'create a new token\n'],
  'packages/client/README.md': [STORED_JSON],
  'docs/generated-clients.md': [EXACT, EXACT],
};

// The compiler compares the keys with the exported types.
const OPTIONS: Record<keyof (PlantStoreOptions & CreatePlantsOptions), string | number> = {
  url: '`PLANT_STORE_URL`',
  token: '`PLANT_STORE_TOKEN`',
  responseTimeoutMs: RESPONSE_TIMEOUT_MS,
  retryForMs: RETRY_FOR_MS,
  ...{ fetch: '', transport: '' },
  concurrency: CONCURRENCY,
  ...{ signal: '', onRetry: '' },
};

function documentAt(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}

for (const [path, outputs] of Object.entries(OUTPUTS)) {
  test(`the examples of ${path} print what the page states, each with a new service`, async () => {
    const examples = [...documentAt(path).matchAll(/^```ts\n(.*?)^```$/gms)].map(([, example]) => example!);
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

test('docs/client.md lists each option with its default, and the errors of one plant', () => {
  for (const [name, value] of Object.entries(OPTIONS)) {
    const [, cell] = new RegExp(`^\\| \`${name}\` \\| ([^|]*)\\|`, 'm').exec(DOCUMENT) ?? [];
    assert.equal(cell?.trim(), value.toLocaleString('en'), name);
  }
  const [, numbers = ''] = /Errors of one plant are ([^.]+)\./.exec(DOCUMENT) ?? [];
  assert.deepEqual(numbers.match(/[0-9]+/g)?.map(Number), ERRORS_OF_ONE_PLANT);
});
