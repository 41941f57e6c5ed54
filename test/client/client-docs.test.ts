import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { ERRORS_OF_ONE_PLANT } from '../../src/client/plant-store-error.ts';
import { ERRORS } from '../../src/contract/errors.ts';
import { startTestService } from '../harness/running-service.ts';

const DOCUMENT = readFileSync(new URL('../../docs/client.md', import.meta.url), 'utf8');
const EXAMPLES = [...DOCUMENT.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, example]) => example!);
/** Of each example, what it prints against a new service; undefined for nothing. */
const PRINTS = ['created plant 9007199254740993, revision 1\n', '', '1000 stored\n', 'make a new token\n'];
const CLIENT = new URL('../../src/client/plant-store.ts', import.meta.url).href;

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'plant-store-client-docs-'));
});
after(() => rmSync(folder, { recursive: true }));

suite('docs/client.md', () => {
  test('has an example for each thing that is printed', () => {
    assert.equal(EXAMPLES.length, PRINTS.length);
  });

  for (const [index, example] of EXAMPLES.entries()) {
    test(`example ${index + 1} does what it says`, async () => {
      await using service = await startTestService();
      const file = join(folder, `example-${index}.ts`);
      writeFileSync(file, example.replace("'plant-store/client'", `'${CLIENT}'`));
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], {
        env: { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token },
        timeout: 60_000,
      });
      assert.deepEqual([stdout, stderr], [PRINTS[index], '']);
    });
  }

  test('names the errors of one plant', () => {
    const [, numbers = ''] = /An `error` of one plant is ([^.]+)\./.exec(DOCUMENT) ?? [];
    assert.deepEqual(numbers.match(/[0-9]+/g)?.map(Number), ERRORS_OF_ONE_PLANT);
  });

  test('names every error of the catalogue, and whether it is sent again', () => {
    const rows = [...DOCUMENT.matchAll(/^\| ([0-9]{5}) \| (yes|no) \|$/gm)];
    assert.deepEqual(
      rows.map(([, number, retry]) => [Number(number), retry === 'yes']),
      Object.values(ERRORS).map(({ number, retry }) => [number, retry || number === 40000]),
    );
  });
});
