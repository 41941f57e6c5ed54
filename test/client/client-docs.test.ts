import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { CONCURRENCY, RESPONSE_TIMEOUT_MS, RETRY_FOR_MS } from '../../src/client/limits.ts';
import {
  type CreatePlantsOptions,
  PlantStore,
  type PlantStoreError,
  type PlantStoreOptions,
  type StoredPlant,
} from '../../src/client/plant-store.ts';
import { ERRORS_OF_ONE_PLANT } from '../../src/client/plant-store-error.ts';
import { startTestService } from '../harness/running-service.ts';
import { runExamples } from './document-examples.ts';

const DOCUMENT = readFileSync(new URL('../../docs/client.md', import.meta.url), 'utf8');
const README = readFileSync(new URL('../../packages/client/README.md', import.meta.url), 'utf8');
const MODULES = {
  'plant-store-client': new URL('../../src/client/plant-store.ts', import.meta.url).href,
};
const OUTPUTS = ['created plant 9007199254740993, revision 1\n', '1000 stored\n', 'create a new token\n'];
const README_OUTPUT =
  '{"id":"9007199254740993","name":"Monstera deliciosa","tag":"houseplant","revision":1,"outcome":"created"}\n';

// The compiler compares the keys with the exported types.
const OPTIONS: Record<keyof PlantStoreOptions, string | number> = {
  url: '`PLANT_STORE_URL`',
  token: '`PLANT_STORE_TOKEN`',
  responseTimeoutMs: RESPONSE_TIMEOUT_MS,
  retryForMs: RETRY_FOR_MS,
  fetch: '',
  transport: '',
};
const CREATE_PLANTS_OPTIONS: Record<keyof CreatePlantsOptions, string | number> = {
  concurrency: CONCURRENCY,
  signal: '',
  onRetry: '',
};
const STORED_PLANT: Record<keyof StoredPlant, true> = {
  id: true,
  name: true,
  tag: true,
  revision: true,
  outcome: true,
  toJSON: true,
};
const ERROR: Record<Exclude<keyof PlantStoreError, keyof Error>, true> = {
  error: true,
  status: true,
  canRetry: true,
  retryAfterMs: true,
  code: true,
};
const METHODS = Object.getOwnPropertyNames(PlantStore.prototype).filter(name => name !== 'constructor');

/** The first two cells of each row of the table after the line, without the header. */
function tableAfter(line: string): [name: string, cell: string][] {
  const [table = ''] = DOCUMENT.slice(DOCUMENT.indexOf(line) + line.length + 2).split('\n\n', 1);
  return [...table.matchAll(/^\| `(\w+)[^|]*\| ([^|]*)\|/gm)].map(([, name, cell]) => [name!, cell!.trim()]);
}

function numbersIn(sentence: RegExp): number[] {
  const [, numbers = ''] = sentence.exec(DOCUMENT) ?? [];
  return (numbers.match(/[0-9]+/g) ?? []).map(Number);
}

suite('docs/client.md', () => {
  test('contains examples that print what the page states', async () => {
    await runExamples(DOCUMENT, OUTPUTS, startTestService, MODULES);
    await runExamples(README, [README_OUTPUT], startTestService, MODULES);
  });

  test('lists the errors of one plant', () => {
    assert.deepEqual(numbersIn(/Errors of one plant are ([^.]+)\./), ERRORS_OF_ONE_PLANT);
  });

  test('states how often the client sends a plant again', () => {
    assert.match(DOCUMENT, /after five errors 40000\s+or\s+ten\s+errors 50001/);
  });

  test('lists each member, and each option with its default', () => {
    for (const [line, defaults] of [
      ['Options of `new PlantStore(options)`:', OPTIONS],
      ['Options of `createPlants`:', CREATE_PLANTS_OPTIONS],
    ] as const) {
      const expected = Object.entries(defaults).map(([name, value]) => [name, value.toLocaleString('en')]);
      assert.deepEqual(tableAfter(line), expected);
    }
    for (const [line, members] of [
      ['Members of a stored plant:', Object.keys(STORED_PLANT)],
      ['Members of `PlantStoreError`:', Object.keys(ERROR)],
      ['Methods of `PlantStore`:', METHODS],
    ] as const) {
      const names = tableAfter(line).map(([name]) => name);
      assert.deepEqual(names.sort(), [...members].sort());
    }
  });
});
