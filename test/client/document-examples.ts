import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { testFolder } from '../harness/test-folder.ts';

/**
 * Runs the TypeScript examples of a document, each against a new service, and asserts their output.
 *
 * @param outputs the expected output of each example
 * @param modules replacements for the imported modules, by the name in the document
 */
export async function runExamples(
  document: string,
  outputs: readonly string[],
  startService: () => Promise<{ url: string; token: string } & AsyncDisposable>,
  modules: Readonly<Record<string, string>>,
): Promise<void> {
  const examples = [...document.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, example]) => example!);
  assert.equal(examples.length, outputs.length);
  const folder = testFolder();
  for (const [index, example] of examples.entries()) {
    await using service = await startService();
    const file = join(folder, `example-${index}.ts`);
    writeFileSync(
      file,
      example.replace(/(?<= from )'(.*)'/g, (_, name) => `'${modules[name]}'`),
    );
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], {
      env: { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token },
      timeout: 60_000,
    });
    assert.deepEqual([stdout, stderr], [outputs[index], '']);
  }
}
